package admin

import (
	"github.com/hashicorp/go-hclog"

	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
)

var (
	quoted   = regexp.MustCompile(`"[^"<>]*"`)
	ofOthers = regexp.MustCompile(`(?i)<script>|<img|<[^>]* (on[a-z]+|style)=`)
)

// foreign returns markup that the page's templates do not contain: scripts, images, event
// handlers and style attributes.
func foreign(page string) string { return ofOthers.FindString(quoted.ReplaceAllString(page, `""`)) }

// hostile is a name that somebody wrote to ZooKeeper.
const hostile = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">"'`

// picture returns a process and a cluster with workers in every state.
func picture(total, held int) Config {
	began := time.Now()
	events := NewEvents(nil)
	events.Accept("flaked.node", hclog.Info, "serving", "worker", 3, "term", 7, "lease_left_s", 86400)
	events.Accept("flaked.node", hclog.Warn, "clock offset is large", "worst_offset_ms", 3600000, "against", 1)
	events.Accept(hostile, hclog.Error, hostile, hostile, hostile)
	name := func(w int) string {
		if w == 4 {
			return hostile
		}
		return fmt.Sprintf("ids-%d", w)
	}
	return Config{
		Events: events,
		About:  About{Version: "1.2.3", Name: "ids-3", Host: "h3", PID: 42, StartedMs: began.Add(-time.Hour).UnixMilli()},
		Workers: func() []node.Snapshot {
			now := time.Now().UnixMilli()
			return []node.Snapshot{{
				Name: "ids-3", Worker: new(3), Term: 7, Phase: node.Serving, Ready: true, Confirmed: true, NowMs: now,
				LeaseLeftMs: new(int64(86_000_000)), LeaseEndsMs: new(now + 86_000_000), ReservedLeftMs: new(int64(2_731)),
				Clock:     node.ClockSnapshot{OffsetMs: new(0.5), UncertaintyMs: new(2.0), WorstMs: new(1.5), WorstUncertaintyMs: new(2.0), Voters: 5},
				ZooKeeper: node.ZooKeeperSnapshot{OK: true, Session: true, HeartbeatAgeMs: new(int64(812)), HeartbeatMs: 3000},
				Disk:      node.DiskSnapshot{OK: true},
				Cluster: node.ClusterSnapshot{
					Name: "orders", UUID: "624812a4", Layout: "time=41@1ms,worker=10,sequence=12,epoch=1288834974657", Slots: total, EpochEndsMs: new(int64(3487858230209)),
				},
			}}
		},
		Counters: func() lineproto.Counters { return busy(time.Since(began)) },
		Slots: func(context.Context) (clusterview.Report, error) {
			s := clusterview.Report{Summary: clusterview.Summary{Slots: total, Used: held, Free: total - held, Problems: []clusterview.Problem{{Severity: clusterview.Critical, Text: "worker 1 (ids-1) is disconnected: its node is not connected to ZooKeeper", Advice: "Start the node again, or restore its connection to ZooKeeper."}}}}
			phase := time.Since(began).Seconds()
			for w := range held {
				one := clusterview.WorkerReport{
					Worker: w, Name: name(w), Node: "18b34979-0000-4000-8000-000000000000", Host: "h", Address: fmt.Sprintf("10.0.%d.%d:7609", w/250, w%250),
					PID: 42, Version: "1.2.3", State: "live", Phase: "serving", Term: int64(w%5 + 1), Confirmed: true, HeartbeatMs: 3000,
					ClockOffsetMs: new(3 * math.Sin(phase/3+float64(w))), ClockUncertaintyMs: new(0.5), LeaseLeftMs: new(int64(86_000_000)), ReportAgeMs: new(int64(1200)),
				}
				switch {
				case w == 2:
					one.ClockOffsetMs, one.Phase = new(-3_600_000.0), "refusing"
				case w == 5:
					one.ReportAgeMs = new(int64(4100))
				case w%7 == 1:
					one.State, one.ClockOffsetMs = clusterview.Disconnected, nil
					s.Summary.Disconnected++
				case w%11 == 6:
					one.State, one.ClockOffsetMs = clusterview.Stopped, nil
					s.Summary.Stopped++
				case w%13 == 8:
					one.State, one.ClockOffsetMs = clusterview.Releasing, nil
					s.Summary.Releasing++
				case w%17 == 9:
					one.State, one.ClockOffsetMs = clusterview.RecordMissing, nil
					s.Summary.RecordMissing++
				}
				s.Workers = append(s.Workers, one)
			}
			s.Summary.Live = held - s.Summary.Disconnected - s.Summary.Stopped - s.Summary.Releasing - s.Summary.RecordMissing
			s.Summary.Held = s.Summary.Live + s.Summary.Disconnected + s.Summary.Stopped
			return s, nil
		},
	}
}

// busy returns the counters of a node after d, under a load that rises and falls.
func busy(d time.Duration) lineproto.Counters {
	n := 40_000 * int64(1e6+60*d.Seconds()+1500*math.Sin(d.Minutes()))
	return lineproto.Counters{
		Durations: lineproto.Histogram{Bounds: []float64{64e-6, 128e-6, 256e-6}, N: []int64{n * 90, n * 9, n, 0}},
		ConnsOpen: 12, ConnsTotal: 40, IDs: n / 10, Requests: []lineproto.RequestCount{{Command: "GET", Result: "OK", N: n / 100}},
	}
}

// The page is complete without a script, and text that others wrote is escaped.
func TestPageWithoutScript(t *testing.T) {
	addr, _ := start(t, picture(32, 20))
	code, header, body := do(t, "GET", "http://"+addr+"/?id=2123840322550104099")
	if code != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" || header.Get("Content-Security-Policy") != contentPolicy {
		t.Errorf("%d %v", code, header)
	}
	if found := foreign(body); found != "" {
		t.Errorf("%s", found)
	}
	for _, want := range []string{
		`<noscript><meta http-equiv="refresh" content="5"></noscript>`, "cluster orders", "Serving IDs", "worker 1 (ids-1) is disconnected", "worker 5: heartbeat overdue. Wait a few seconds.",
		"23h53m", "812ms ago", "14 live", "&lt;script&gt;", "1h0m ± 0.5ms slow", "10.0.0.7:7609",
		"2026-11-20T18:06:06.598Z", "number 35 of its tick", "clock offset is large", "IDs end on 2080-07-10",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(body, "cannot render") {
		t.Error(body)
	}
}

func TestPageRendersWithMissingData(t *testing.T) {
	for name, cfg := range map[string]Config{
		"nothing is known": {},
		"all is wrong":     full(),
		"ZooKeeper is away": {
			Slots: func(context.Context) (clusterview.Report, error) {
				return clusterview.Report{}, errors.New("ZooKeeper <is> away")
			},
			Ready:   func() error { return errors.New("-NOTREADY starting reason=no-worker-yet") },
			Workers: func() []node.Snapshot { return nil },
		},
		"a huge cluster": {Slots: func(context.Context) (clusterview.Report, error) {
			s := clusterview.Report{Summary: clusterview.Summary{Slots: 1 << 22, Used: 3, Live: 3}}
			for _, w := range []int{0, 5000, 4_000_000} {
				s.Workers = append(s.Workers, clusterview.WorkerReport{Worker: w, State: "live", ClockOffsetMs: new(1.0)})
			}
			return s, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := start(t, cfg)
			for _, path := range []string{"/", "/?id=x", "/?id=99999999999999999999"} {
				code, _, body := do(t, "GET", "http://"+addr+path)
				if code != 200 || strings.Contains(body, "cannot render") || !strings.Contains(body, "</html>") {
					t.Errorf("%s: %d %s", path, code, body)
				}
				if len(body) > 400_000 {
					t.Errorf("%s: %d bytes", path, len(body))
				}
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	ends := []float64{64e-6, 128e-6, 2}
	for _, row := range []struct {
		n      []int64
		q      float64
		wanted string
	}{
		{[]int64{0, 0, 0, 0}, 0.5, "–"},
		{[]int64{1, 0, 0, 0}, 0.99, "≤ 64 µs"},
		{[]int64{98, 2, 0, 0}, 0.99, "≤ 128 µs"},
		{[]int64{0, 0, 1, 0}, 0.5, "≤ 2.0 s"},
		{[]int64{0, 0, 0, 1}, 0.5, "≤ 2.0 s"},
		{nil, 0.5, "–"},
	} {
		if got := quantile(row.n, ends, row.q); got != row.wanted {
			t.Errorf("%v %v: %s, want %s", row.n, row.q, got, row.wanted)
		}
	}
}

func TestClockWords(t *testing.T) {
	for _, row := range []struct {
		ms, uncertain float64
		want          string
	}{
		{-3_600_000, 1, "1h0m ± 1ms slow"},
		{1.2, 0.5, "1.2ms ± 0.5ms fast"},
		{1.2, 1.2, "+1.2ms ± 1.2ms"},
		{-1.2, 3, "-1.2ms ± 3ms"},
		{0, 0, "0ms ± 0ms"},
	} {
		if got := clockWords(row.ms, row.uncertain); got != row.want {
			t.Errorf("%v ± %v: %s, want %s", row.ms, row.uncertain, got, row.want)
		}
	}
}

func TestWrapAfterCommas(t *testing.T) {
	for text, want := range map[string]string{"": "", "worker=10": "worker=10", "a=1,b=2,<i>": "a=1,<wbr>b=2,<wbr>&lt;i&gt;"} {
		if got := string(wrapAfterCommas(text)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
