package worker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyLayout draws a valid layout.
func anyLayout(t *rapid.T) Layout {
	l := Layout{
		Epoch: rapid.Int64Range(earliestEpoch, 1700000000000).Draw(t, "epoch"),
		Unit: time.Duration(rapid.SampledFrom([]int{1, 2, 10, 100, 1000, 3600000}).Draw(t,
			"unit")) * time.Millisecond,
		WorkerBits:     rapid.Uint8Range(1, maxWorkerBits).Draw(t, "worker"),
		DatacenterBits: rapid.Uint8Range(0, 8).Draw(t, "datacenter"),
	}
	l.SequenceBits = rapid.Uint8Range(0, min(maxSequence, usableBits-1-l.WorkerBits-l.DatacenterBits)).Draw(t,
		"sequence")
	l.SegmentBits = rapid.Uint8Range(0, min(5, maxSequence-l.SequenceBits,
		usableBits-1-l.WorkerBits-l.DatacenterBits-l.SequenceBits)).Draw(t, "segment")
	l.RollbackBits = rapid.Uint8Range(0, min(maxRollback, usableBits-1-l.timeShift())).Draw(t, "rollback")
	l.TimeBits = rapid.Uint8Range(1, usableBits-l.timeShift()).Draw(t, "time")
	order := rapid.Permutation(defaultOrder[:]).Filter(func(o []Field) bool {
		return l.SegmentBits == 0 || slices.Index(o, FieldSegment) < slices.Index(o, FieldSequence)
	}).Draw(t, "order")
	l.Order = Order(order)
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
			Sequence:   rapid.Int64Range(0, 1<<l.SequenceBits-1).Draw(t, "sequence"),
			Segment:    rapid.Int64Range(0, 1<<l.SegmentBits-1).Draw(t, "segment"),
			Rollback:   rapid.Int64Range(0, 1<<l.RollbackBits-1).Draw(t, "rollback"),
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
		fits := [6]int64{int64(l.MaxTick()), int64(l.Datacenters() - 1), int64(l.Workers() - 1), 1<<l.SequenceBits - 1,
			1<<l.SegmentBits - 1, 1<<l.RollbackBits - 1}
		f := fits
		i := rapid.IntRange(0, 5).Draw(t, "field")
		if rapid.Bool().Draw(t, "negative") {
			f[i] = -rapid.Int64Range(1, 1<<62).Draw(t, "by")
		} else {
			f[i] = rapid.Int64Range(fits[i]+1, 1<<63-1).Draw(t, "value")
		}
		if id, err := l.Encode(Fields{Tick(f[0]), f[1], f[2], f[3], f[4], f[5]}); err == nil {
			t.Fatalf("%s: %v encoded as %d", l, f, id)
		}
	})
}

// Layouts are equal exactly if their strings are, because clusters and state files compare
// the strings.
func TestEqualLayoutsHaveEqualStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLayout(t)
		again, err := ParseLayout(l.String())
		if err != nil || again != l.canonical() {
			t.Fatalf("%s read back as %s, %v", l, again, err)
		}
		other := l
		other.Order = Order(rapid.Permutation(defaultOrder[:]).Draw(t, "other order"))
		if other.Validate() != nil {
			return
		}
		f := Fields{
			Tick: l.MaxTick(), Datacenter: int64(l.Datacenters() - 1),
			Segment:  rapid.Int64Range(0, 1<<l.SegmentBits-1).Draw(t, "segment"),
			Rollback: rapid.Int64Range(0, 1<<l.RollbackBits-1).Draw(t, "rollback"),
		}
		// With all ones in the sequence and all zeroes in the worker, no two orders give
		// the same number.
		f.Sequence = 1<<l.SequenceBits - 1
		a, err := l.Encode(f)
		b, err2 := other.Encode(f)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if a != b && l.String() == other.String() {
			t.Fatalf("%s for %d and for %d", l, a, b)
		}
		if l.canonical() == other.canonical() && a != b {
			t.Fatalf("%s taken for %s", l, other)
		}
	})
}

// FuzzParseLayout: any text, such as that of a cluster's record, is refused with a reason, or is a valid layout that
// its string gives again. A number is an ID of the layout, or refused.
func FuzzParseLayout(f *testing.F) {
	for _, row := range layoutTexts {
		for _, number := range []int64{440322224407314432, -1, -1 << 63, 1<<63 - 1} {
			f.Add(row.in, number)
		}
	}
	f.Fuzz(func(t *testing.T, text string, number int64) {
		l, err := ParseLayout(text)
		if err != nil {
			if !errors.Is(err, ErrLayout) {
				t.Fatal(err)
			}
			return
		}
		if again, err := ParseLayout(l.String()); err != nil || again != l || l.Validate() != nil {
			t.Fatalf("%s is %s, read back as %s, %v", text, l, again, err)
		}
		fields, err := l.Decode(ID(number))
		if (err != nil) != (number < 0 || number>>l.timeShift() > int64(l.MaxTick())) {
			t.Fatalf("%s: %d is %+v, %v", l, number, fields, err)
		}
		if id, wrong := l.Encode(fields); err == nil && (id != ID(number) || wrong != nil) {
			t.Fatalf("%s: %d is %+v, encoded as %d, %v", l, number, fields, id, wrong)
		}
	})
}

func TestPresets(t *testing.T) {
	for _, p := range Presets() {
		l, err := ParseLayout(strings.ToUpper(p.Name))
		if err != nil || l != p.Layout {
			t.Errorf("%s: %s, %v; want %s", p.Name, l, err, p.Layout)
		}
		if got := PresetName(l); got != p.Name {
			t.Errorf("%s is called %q", p.Name, got)
		}
		if again, err := ParseLayout(l.String()); err != nil || again != l {
			t.Errorf("%s: %s read back as %s, %v", p.Name, l, again, err)
		}
		if p.About == "" || len(p.About) > 60 {
			t.Errorf("%s: about %q", p.Name, p.About)
		}
	}
	if got := PresetName(Layout{}); got != "" {
		t.Errorf("no layout is called %q", got)
	}
}

func TestInvalidOrderIsRefused(t *testing.T) {
	for _, o := range []Order{
		{FieldWorker, FieldWorker, FieldSequence, FieldSegment, FieldRollback},
		{FieldTime, FieldDatacenter, FieldWorker, FieldSequence, FieldSegment},
		{FieldSegment, FieldDatacenter, FieldWorker, 9, FieldSequence},
		{FieldSegment, FieldDatacenter, FieldWorker, FieldSequence},
	} {
		l := Leaf()
		l.Order = o
		if err := l.Validate(); !errors.Is(err, ErrLayout) {
			t.Errorf("%v: %v", o, err)
		}
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
		if got := l.tickAt(ms*1e6 + 999_999); l.Unit == time.Millisecond && got != floor {
			t.Fatalf("tickAt = %d, FloorTick = %d", got, floor)
		}
	})
}

var layoutTexts = []struct{ in, want, wrong string }{ // + in want is the usual epoch
	{in: "leaf", want: Leaf().String()},
	{in: "Twitter", want: "time=41@1ms,datacenter=5,worker=5,sequence=12+"},
	{in: "time=39@10ms,worker=16,sequence=8,epoch=2014-09-01T00:00:00Z",
		want: "time=39@10ms,datacenter=0,worker=16,sequence=8,epoch=1409529600000"},
	{in: " worker=12 , sequence=10 ", want: "time=41@1ms,datacenter=0,worker=12,sequence=10+"},
	{in: "sequence=10,worker=12", want: "time=41@1ms,sequence=10,datacenter=0,worker=12+,order=written"},
	{in: "sequence=10,time=43", want: "time=43@1ms,datacenter=0,worker=10,sequence=10+"},
	{in: "worker=5,datacenter=5", want: "time=41@1ms,worker=5,datacenter=5,sequence=12+,order=written"},
	{in: "datacenter=0,sequence=8,worker=14", want: "time=41@1ms,sequence=8,datacenter=0,worker=14+,order=written"},
	{in: "sequence=12,datacenter=0,segment=0,worker=10",
		want: "time=41@1ms,sequence=12,datacenter=0,worker=10+,order=written"},
	{in: "sequence=0,worker=14", want: "time=41@1ms,datacenter=0,worker=14,sequence=0+"},
	{in: "sonyflake", want: "time=39@10ms,sequence=8,datacenter=0,worker=16,epoch=1409529600000,order=written"},
	{in: "time=39@10ms,sequence=8,worker=16,epoch=2014-09-01", want: Sonyflake().String()},
	{in: "pearflower", want: "time=31@1s,segment=3,datacenter=0,worker=10,sequence=19,epoch=1483200000000"},
	{in: "time=31@1s,worker=10,segment=3,sequence=19",
		want: "time=31@1s,datacenter=0,worker=10,segment=3,sequence=19+,order=written"},
	{in: "Sonyflake, epoch=2025-01-01",
		want: "time=39@10ms,sequence=8,datacenter=0,worker=16,epoch=1735689600000,order=written"},
	{in: "leaf,sequence=14,worker=8", want: "time=41@1ms,datacenter=0,worker=8,sequence=14+"},
	{in: "leaf,sequence=14,worker=8,order=written",
		want: "time=41@1ms,sequence=14,datacenter=0,worker=8+,order=written"},
	{in: "time=39,rollback=2", want: "time=39@1ms,rollback=2,datacenter=0,worker=10,sequence=12+"},
	{in: "time=39,rollback=2,segment=0,worker=10",
		want: "time=39@1ms,rollback=2,datacenter=0,worker=10,sequence=12+"},
	{in: "time=38,rollback=2,segment=1",
		want: "time=38@1ms,rollback=2,segment=1,datacenter=0,worker=10,sequence=12+"},
	{in: "time=38,segment=1,rollback=2",
		want: "time=38@1ms,segment=1,rollback=2,datacenter=0,worker=10,sequence=12+,order=written"},
	{in: "time=39,worker=10,rollback=2,sequence=12",
		want: "time=39@1ms,datacenter=0,worker=10,rollback=2,sequence=12+,order=written"},
	{in: "leaf,time=40,rollback=1", want: "time=40@1ms,rollback=1,datacenter=0,worker=10,sequence=12+"},
	{in: "time=37,rollback=4", wrong: "at most 3"},
	{in: "leaf,leaf", wrong: "unknown field"},
	{in: "worker=5,leaf", wrong: "unknown field"},
	{in: "order=mine", wrong: `it must be "written"`},
	{in: "sequence=8,segment=2,worker=5", wrong: "the segment field must be above the sequence field"},
	{in: "segment=10,sequence=21,worker=1,time=30", wrong: "together they must have at most 30"},
	{in: "uid-generator,epoch=2026-13-01", wrong: "or a date"},
	{in: "", wrong: "not a preset"},
	{in: "snowcone", wrong: "not a preset"},
	{in: "worker=20", wrong: "add up to 73"},
	{in: "worker=0", wrong: "1 to 24 bits"},
	{in: "time=0", wrong: "at least one bit"},
	{in: "time=41@1us", wrong: "whole number of milliseconds"},
	{in: "time=41@soon", wrong: "a duration such as 1ms"},
	{in: "worker=-1", wrong: "the width must be 0 to 63 bits"},
	{in: "worker=5,worker=5", wrong: "given twice"},
	{in: "segment=3", wrong: "segment=3 datacenter=0 worker=10 sequence=12 add up to 66"},
	{in: "shard=3", wrong: "unknown field"},
	{in: "epoch=yesterday", wrong: "Unix milliseconds"},
	{in: "epoch=-1", wrong: "between 1970 and 2200"},
	{in: "sequence=31,worker=1,time=30", wrong: "at most 30"},
}

func TestParseLayout(t *testing.T) {
	for _, r := range layoutTexts {
		t.Run(r.in, func(t *testing.T) {
			l, err := ParseLayout(r.in)
			if r.wrong != "" {
				if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), r.wrong) {
					t.Fatalf("error %v, want one with %q", err, r.wrong)
				}
				return
			}
			if err != nil || l.String() != strings.Replace(r.want, "+", ",epoch=1288834974657", 1) {
				t.Fatalf("%s, %v", l, err)
			}
			if again, err := ParseLayout(l.String()); err != nil || again != l {
				t.Fatalf("%s read back as %s, %v", l, again, err)
			}
		})
	}
}

func TestCeiling(t *testing.T) {
	for text, want := range map[string]int64{
		"leaf":                                   4_096_000,
		"sonyflake":                              25_600,
		"time=41,worker=10,sequence=2":           4000,
		"time=30@2s,worker=10,sequence=4":        16, // of a tick
		"time=30,worker=10,segment=3,sequence=5": 256_000,
		"time=30@300ms,worker=10,sequence=4":     48, // of whole ticks
	} {
		l, err := ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Ceiling(); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// tickAt returns the tick of a moment in Unix nanoseconds. It is negative before the epoch.
func (l Layout) tickAt(ns int64) Tick {
	return Tick(floorDiv(ns-l.Epoch*unixNanosPerMs, int64(l.Unit)))
}
