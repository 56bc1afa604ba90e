package web

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/lineproto"
)

// ends are the ends of the buckets of durations in this file, in seconds.
var ends = []float64{64e-6, 128e-6, 2}

func TestQuantile(t *testing.T) {
	none := []int64{0, 0, 0, 0}
	for _, row := range []struct {
		before, n []int64
		q         float64
		want      string
	}{
		{nil, none, 0.5, "–"},
		{nil, []int64{1, 0, 0, 0}, 0.99, "≤ 64 µs"},
		{nil, []int64{98, 2, 0, 0}, 0.99, "≤ 128 µs"},
		{nil, []int64{0, 0, 1, 0}, 0.5, "≤ 2 s"},
		{nil, []int64{0, 0, 0, 1}, 0.5, "> 2 s"},
		{nil, nil, 0.5, "–"},
		{[]int64{1_000_000, 0, 0, 0}, []int64{1_000_000, 1, 0, 0}, 0.99, "≤ 128 µs"}, // only what is new counts
		{[]int64{5, 1, 0, 0}, []int64{5, 1, 0, 0}, 0.99, "–"},
	} {
		a, b := lineproto.Histogram{Bounds: ends, N: row.before}, lineproto.Histogram{Bounds: ends, N: row.n}
		if got := latency(quantile(a, b, row.q), 2); got != row.want {
			t.Errorf("%v - %v %v: %s, want %s", row.n, row.before, row.q, got, row.want)
		}
	}
}

// sec is a moment of the boot clock.
func sec(n int) int64 { return int64(n) * int64(time.Second) }

// at returns the sample of a moment, when so many requests and IDs had been answered since the start.
func at(seconds int, requests int64) sample {
	return sample{at: sec(seconds), ok: requests, ids: 2 * requests, offset: 1.5,
		durations: lineproto.Histogram{Bounds: ends, N: []int64{requests, 0, 0, 0}}}
}

// An interval without samples is unknown: the process or the machine stood still. The next one is known again.
func TestMissingSamplesAreUnknown(t *testing.T) {
	for _, row := range []struct {
		name    string
		samples []sample
		now     int
		want    string // the requests a second of the last intervals, "-" for no sample
	}{
		{"the process has just started", []sample{at(1003, 0)}, 1009, "- - - - - -"},
		{"one sample", []sample{at(1003, 0), at(1010, 70)}, 1011, "- - - - - 10"},
		{"all samples", []sample{at(990, 0), at(1000, 10), at(1010, 30), at(1020, 60)}, 1025, "- - - 1 2 3"},
		{"the newest is due right now", []sample{at(990, 0), at(1000, 10), at(1010, 30)}, 1020, "- - - - 1 2"},
		{"one is 4 s late", []sample{at(990, 0), at(1004, 14), at(1010, 20), at(1020, 30)}, 1021, "- - - 1 1 1"},
		{"one is missing", []sample{at(990, 0), at(1000, 10), at(1020, 30), at(1030, 40)}, 1031, "- - 1 - - 1"},
		{"none for 40 s", []sample{at(990, 0), at(1000, 10)}, 1041, "- 1 - - - -"},
		{"an hour of sleep, and one sample since", []sample{at(1000, 0), at(1010, 9), at(4700, 10)}, 4701,
			"- - - - - -"},
		{"an hour of sleep, and two samples since", []sample{at(1010, 9), at(4700, 10), at(4710, 30)}, 4711,
			"- - - - - 2"},
	} {
		all, sampled := overTime(row.samples, lastStep(row.samples, sec(row.now)))
		var got []string
		for i := pastSteps - 6; i < pastSteps; i++ {
			text := "-"
			if sampled[i] {
				text = fmt.Sprint(all[i][ofRequests])
			} else if !math.IsNaN(all[i][ofRequests]) {
				t.Errorf("%s: a value without a sample", row.name)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%s: %s, want %s", row.name, text, row.want)
		}
	}
}

// The table has whole minutes only.
func TestMinutesWithoutSamplesAreLeftOut(t *testing.T) {
	var samples []sample
	for s := 0; s <= 1200; s += 10 {
		if s != 1010 {
			samples = append(samples, at(s, int64(s)))
		}
	}
	rows := byMinute(samples, 120)
	if len(rows) != 14 || rows[0].end != 120 || rows[2].end != 108 || rows[3].end != 96 {
		t.Fatalf("%v", rows)
	}
	if v := rows[0].values; v[ofRequests] != 1 || v[ofIDs] != 2 || v[ofRefused] != 0 || v[ofLatency] != 64e-6 ||
		v[ofOffset] != 1.5 {
		t.Errorf("%v", v)
	}
}

// However many calls of Serve there are, a sample is taken every 10 s, and those of 15 minutes are kept.
func TestSamplesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPast(func() int64 { return time.Now().UnixNano() + sec(3) })
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go p.run(ctx, func(at int64) sample { return sample{at: at} })
		}
		time.Sleep(66 * time.Second)
		synctest.Wait()
		if all := p.all(); len(all) != 7 || all[0].at != p.began || all[1].at%sec(10) != 0 ||
			all[6].at-all[1].at != sec(50) {
			t.Errorf("%+v", all)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if all := p.all(); len(all) != pastSteps+1 || all[pastSteps].at-all[0].at != sec(900) {
			t.Errorf("%d samples from %d to %d", len(all), all[0].at, all[len(all)-1].at)
		}
		cancel()
	})
}

// A sample has the clock's offset only if a recent heartbeat has measured it.
func TestOldOffsetsAreNotSampled(t *testing.T) {
	for _, row := range []struct {
		name  string
		w     node.Snapshot
		known bool
	}{
		{"no heartbeat yet", node.Snapshot{}, false},
		{"recent", serving(), true},
		{"a late heartbeat", own(func(w *node.Snapshot) { w.ZooKeeper.HeartbeatAgeMs = new(int64(9000)) }).Snapshot, true},
		{"ZooKeeper is away", own(cutOff).Snapshot, false},
		{"seldom heartbeats", own(func(w *node.Snapshot) {
			w.ZooKeeper.HeartbeatMs, w.ZooKeeper.HeartbeatAgeMs = 30_000, new(int64(25_000))
		}).Snapshot, true},
	} {
		s := New(whole(Config{})).sampleOf(5, row.w)
		if known := !math.IsNaN(s.offset); known != row.known {
			t.Errorf("%s: %v", row.name, s.offset)
		}
	}
}

func TestLoadIsThatOfTheLastMinute(t *testing.T) {
	samples := []sample{at(3, 0), at(10, 100), at(20, 200), at(30, 300)}
	for _, row := range []struct {
		now      int
		requests int64
		want     string
	}{
		{9, 60, "10/s over 6.0s"}, {65, 300, "4.8/s over 1m2s"}, {70, 400, "5.0/s over 1m0s"}, {75, 101, "<0.1/s over 1m5s"}, {85, 400, "3.1/s over 1m5s"},
	} {
		if v := loadOf(samples, at(row.now, row.requests)); v.Requests+" over "+v.Over != row.want {
			t.Errorf("%d: %s over %s, want %s", row.now, v.Requests, v.Over, row.want)
		}
	}
}
