package worker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyLayout draws a valid layout.
func anyLayout(t *rapid.T) Layout {
	l := Layout{
		Epoch:          rapid.Int64Range(earliestEpoch, 1700000000000).Draw(t, "epoch"),
		Unit:           time.Duration(rapid.SampledFrom([]int{1, 2, 10, 100, 1000, 3600000}).Draw(t, "unit")) * time.Millisecond,
		WorkerBits:     rapid.Uint8Range(1, maxWorkerBits).Draw(t, "worker"),
		DatacenterBits: rapid.Uint8Range(0, 8).Draw(t, "datacenter"),
	}
	l.SequenceBits = rapid.Uint8Range(0, min(maxSequence, usableBits-1-l.WorkerBits-l.DatacenterBits)).Draw(t, "sequence")
	l.TimeBits = rapid.Uint8Range(1, usableBits-l.WorkerBits-l.DatacenterBits-l.SequenceBits).Draw(t, "time")
	if err := l.Validate(); err != nil {
		t.Fatalf("%+v: %v", l, err)
	}
	return l
}

func TestEncodeDecodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLayout(t)
		want := Fields{
			Tick:       Tick(rapid.Int64Range(0, int64(l.MaxTick())).Draw(t, "tick")),
			Datacenter: rapid.Int64Range(0, int64(l.Datacenters()-1)).Draw(t, "datacenter"),
			Worker:     rapid.Int64Range(0, int64(l.Workers()-1)).Draw(t, "worker"),
			Sequence:   rapid.Int64Range(0, l.Sequences()-1).Draw(t, "sequence"),
		}
		id, err := l.Encode(want)
		if err != nil || id < 0 {
			t.Fatalf("Encode(%+v) = %d, %v", want, id, err)
		}
		if got, err := l.Decode(id); err != nil || got != want {
			t.Fatalf("Decode(%d) = %+v, %v; want %+v", id, got, err, want)
		}
	})
}

func TestEncodeRefusesWhatDoesNotFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLayout(t)
		fits := [4]int64{int64(l.MaxTick()), int64(l.Datacenters() - 1), int64(l.Workers() - 1), l.Sequences() - 1}
		f := fits
		i := rapid.IntRange(0, 3).Draw(t, "field")
		if rapid.Bool().Draw(t, "negative") {
			f[i] = -rapid.Int64Range(1, 1<<62).Draw(t, "by")
		} else {
			f[i] = rapid.Int64Range(fits[i]+1, 1<<63-1).Draw(t, "value")
		}
		if id, err := l.Encode(Fields{Tick(f[0]), f[1], f[2], f[3]}); err == nil {
			t.Fatalf("%s: %v encoded as %d", l, f, id)
		}
	})
}

func TestDecodeKnownIDs(t *testing.T) {
	rows := []struct {
		name     string
		layout   Layout
		id       ID
		time     string
		dc, w, s int64
	}{
		// A tweet of the night of the Oscars of 2014.
		{"twitter", Twitter(), 440322224407314432, "2014-03-03T03:06:13.747Z", 1, 0, 0},
		{"leaf, same bits", Leaf(), 440322224407314432, "2014-03-03T03:06:13.747Z", 0, 32, 0},
		{"first of all", Leaf(), 0, "2010-11-04T01:42:54.657Z", 0, 0, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f, err := r.layout.Decode(r.id)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.layout.Time(f).Format("2006-01-02T15:04:05.000Z07:00"); got != r.time || f.Datacenter != r.dc || f.Worker != r.w || f.Sequence != r.s {
				t.Errorf("got %s %+v", got, f)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	short := Leaf()
	short.TimeBits = 31
	for _, id := range []ID{-1, -1 << 63} {
		if _, err := Leaf().Decode(id); err == nil {
			t.Errorf("%d decoded", id)
		}
	}
	if _, err := short.Decode(1<<63 - 1); err == nil {
		t.Error("bits above the time field decoded")
	}
}

func TestTickRounding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLayout(t)
		ms := rapid.Int64Range(0, 4102444800000).Draw(t, "ms")
		floor, ceil := l.FloorTick(ms), l.CeilTick(ms)
		if l.Start(floor) > ms || l.Start(floor+1) <= ms {
			t.Fatalf("floor: tick %d of %s starts at %d, asked %d", floor, l, l.Start(floor), ms)
		}
		if l.Start(ceil) < ms || l.Start(ceil-1) >= ms {
			t.Fatalf("ceil: tick %d of %s starts at %d, asked %d", ceil, l, l.Start(ceil), ms)
		}
		if got := l.TickAt(ms*1e6 + 999_999); l.Unit == time.Millisecond && got != floor {
			t.Fatalf("TickAt = %d, FloorTick = %d", got, floor)
		}
	})
}

func TestExpires(t *testing.T) {
	if got := Leaf().Expires().Format(time.RFC3339); got != "2080-07-10T17:30:30Z" {
		t.Errorf("leaf expires %s", got)
	}
	long, err := ParseLayout("time=60@1h,worker=2,sequence=1")
	if err != nil {
		t.Fatal(err)
	}
	if got := long.Expires().Year(); got != 9999 {
		t.Errorf("a layout beyond int64 expires in %d", got)
	}
}

func TestParseLayout(t *testing.T) {
	rows := []struct{ in, want, wrong string }{
		{in: "leaf", want: Leaf().String()},
		{in: "Twitter", want: "time=41@1ms,datacenter=5,worker=5,sequence=12,epoch=1288834974657"},
		{in: "time=39@10ms,worker=16,sequence=8,epoch=2014-09-01T00:00:00Z", want: "time=39@10ms,datacenter=0,worker=16,sequence=8,epoch=1409529600000"},
		{in: " sequence=10 , worker=12 ", want: "time=41@1ms,datacenter=0,worker=12,sequence=10,epoch=1288834974657"},
		{in: "", wrong: "not a preset"},
		{in: "snowcone", wrong: "not a preset"},
		{in: "worker=20", wrong: "add up to 73"},
		{in: "worker=0", wrong: "1 to 24 bits"},
		{in: "time=0", wrong: "at least one bit"},
		{in: "time=41@1us", wrong: "whole number of milliseconds"},
		{in: "time=41@soon", wrong: "written as 1ms"},
		{in: "worker=-1", wrong: "number of bits"},
		{in: "worker=5,worker=5", wrong: "given twice"},
		{in: "segment=3", wrong: "unknown field"},
		{in: "epoch=yesterday", wrong: "Unix milliseconds"},
		{in: "epoch=-1", wrong: "between 1970 and 2200"},
		{in: "sequence=31,worker=1,time=30", wrong: "at most 30"},
	}
	for _, r := range rows {
		t.Run(r.in, func(t *testing.T) {
			l, err := ParseLayout(r.in)
			if r.wrong != "" {
				if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), r.wrong) {
					t.Fatalf("error %v, want one with %q", err, r.wrong)
				}
				return
			}
			if err != nil || l.String() != r.want {
				t.Fatalf("%s, %v", l, err)
			}
			if again, err := ParseLayout(l.String()); err != nil || again != l {
				t.Fatalf("%s read back as %s, %v", l, again, err)
			}
		})
	}
}
