package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// A tick that begins in a random segment has only the numbers from there on. The tick after
// one that was used up begins in the first segment and has all its numbers.
func TestRandomSegmentStartKeepsTheRestOfTheTick(t *testing.T) {
	l, err := ParseLayout("time=31@1s,segment=3,worker=10,sequence=4")
	if err != nil {
		t.Fatal(err)
	}
	g, c := newManual(t, func(cfg *GeneratorConfig) {
		cfg.Layout, cfg.SegmentStart, cfg.SequenceStart = l, SegmentRandom, StartRandom
		cfg.Rand = func(n uint32) uint32 { return n - 1 }
	})
	f, _ := l.Decode(mustNext(t, g))
	if f.Segment != 7 || f.Sequence != 7 {
		t.Fatalf("%+v; want the last segment, and the last of the lower eight numbers in it", f)
	}
	n := 1
	for tick := f.Tick; tick == f.Tick; n++ {
		f, _ = l.Decode(mustNext(t, g))
	}
	if n != 17-7 || f.Segment != 0 || f.Sequence != 0 {
		t.Fatalf("%d IDs, then %+v; want what was left of the segment, and then all of the next tick", n, f)
	}
	c.step(2 * time.Second)
	if f, _ = l.Decode(mustNext(t, g)); f.Segment != 7 {
		t.Fatalf("%+v after a tick with numbers to spare", f)
	}
}

func TestBorrowing(t *testing.T) {
	g, c := newManual(t, func(cfg *GeneratorConfig) { cfg.Borrow = 3 * time.Millisecond })
	c.ns.Store(c.ns.Load() / 1e6 * 1e6)
	now := Leaf().tickAt(c.Now())
	burst := func() (n int) {
		for {
			run, pause, err := g.Try(10_000, 0)
			if err != nil {
				t.Fatal(err)
			}
			if run.Len == 0 {
				if pause.Rollback || pause.For != time.Millisecond {
					t.Fatalf("%+v; want the next tick to be waited for", pause)
				}
				return n
			}
			n += run.Len
		}
	}
	if n := burst(); n != 4*4096 {
		t.Fatalf("%d IDs; want those of this tick and three more", n)
	}
	if b := g.Behind(); b > 0 {
		t.Errorf("behind by %s for having borrowed", b)
	}
	c.step(time.Millisecond)
	if n := burst(); n != 4096 {
		t.Fatalf("%d IDs in the next tick", n)
	}
	// Only the part beyond the borrowed time is a rollback.
	c.step(-3 * time.Millisecond)
	if b := g.Behind(); b != 3*time.Millisecond {
		t.Errorf("behind by %s", b)
	}
	if _, pause, err := g.Try(1, 0); err != nil || !pause.Rollback || pause.For != 6*time.Millisecond {
		t.Errorf("%+v, %v", pause, err)
	}
	c.step(time.Second)
	g.Extend(Leaf().tickAt(c.Now()) + 2)
	if f, _ := Leaf().Decode(mustNext(t, g)); f.Tick != now+1+1000-3 || f.Sequence != 0 {
		t.Errorf("%+v; want the clock's own tick again", f)
	}
}

func TestRollbacksAreCounted(t *testing.T) {
	l, err := ParseLayout("time=41,worker=8,rollback=2,sequence=12")
	if err != nil {
		t.Fatal(err)
	}
	g, c := newManual(t, func(cfg *GeneratorConfig) { cfg.Layout, cfg.CountRollbacks = l, true })
	decode := func(id ID) Fields {
		f, err := l.Decode(id)
		if err != nil || f.Tick != l.tickAt(c.Now()) {
			t.Fatalf("%+v, %v", f, err)
		}
		return f
	}
	if f := decode(mustNext(t, g)); f.Rollback != 0 {
		t.Fatalf("%+v", f)
	}
	for want := range int64(3) {
		c.step(-time.Second)
		if err := g.Ready(); err != nil {
			t.Fatal(err)
		}
		if f := decode(mustNext(t, g)); f.Rollback != want+1 || f.Sequence != 0 {
			t.Fatalf("%+v; want rollback %d", f, want+1)
		}
	}
	if g.Rollbacks() != 3 {
		t.Errorf("%d rollbacks counted", g.Rollbacks())
	}
	// At the fourth rollback all values have been used after the clock's time.
	c.step(-time.Second)
	var behind *BehindError
	if _, err := g.Next(context.Background()); !errors.As(err, &behind) || !errors.As(g.Ready(), &behind) {
		t.Fatalf("%v; want a refusal: every value is used ahead of the clock", err)
	}
	// The first value was used 4 s after this time, and the last value 1 s after it.
	c.step(2 * time.Second)
	if f := decode(mustNext(t, g)); f.Rollback != 3 {
		t.Fatalf("%+v", f)
	}
	c.step(3 * time.Second)
	mustNext(t, g)
	c.step(-10 * time.Millisecond)
	if f := decode(mustNext(t, g)); f.Rollback != 0 {
		t.Fatalf("%+v; want the first value again, above all that was made with it", f)
	}
}

// A goroutine may still hold a counter that another one has replaced. It must make no ID in
// it, because the tick where its value may begin again is fixed already.
func TestReplacedSnowflakeIsClosed(t *testing.T) {
	l, err := ParseLayout("time=41,worker=8,rollback=2,sequence=12")
	if err != nil {
		t.Fatal(err)
	}
	g, c := newManual(t, func(cfg *GeneratorConfig) { cfg.Layout, cfg.CountRollbacks = l, true })
	mustNext(t, g)
	left := g.active.Load()
	c.step(-time.Second)
	mustNext(t, g)
	c.step(time.Hour)
	if _, _, err := left.try(1, 0); !errors.Is(err, ErrClosed) {
		t.Fatalf("%v; want ErrClosed", err)
	}
}

func TestNoDuplicatesBetweenGoroutines(t *testing.T) {
	l := Leaf()
	l.SequenceBits = 18 // enough that the ceiling does not slow the race down
	l.TimeBits = 35
	l.Unit = 64 * time.Millisecond
	g, err := NewGenerator(GeneratorConfig{Layout: l, Clock: systemClock{}, OnRollback: leafRule{}})
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(l.MaxTick())
	const goroutines, each = 8, 20_000
	all := make([][]ID, goroutines)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			ids := make([]ID, 0, each)
			for len(ids) < each {
				run, err := g.Reserve(context.Background(), 1+i*3)
				if err != nil {
					t.Error(err)
					return
				}
				for k := range run.Len {
					ids = append(ids, run.At(k))
				}
			}
			if !slices.IsSorted(ids) {
				t.Error("not increasing within a goroutine")
			}
			all[i] = ids
		})
	}
	wg.Wait()
	merged := slices.Concat(all...)
	slices.Sort(merged)
	if n := len(slices.Compact(slices.Clone(merged))); n != len(merged) {
		t.Errorf("%d IDs, %d different", len(merged), n)
	}
}

// Goroutines that find the clock behind at the same time go on without making an ID twice.
// Close ends the tenure for all of them.
func TestConcurrentRollbacksMakeNoIDTwice(t *testing.T) {
	l, err := ParseLayout("time=40@10ms,worker=4,rollback=3,sequence=16")
	if err != nil {
		t.Fatal(err)
	}
	c := &manualClock{}
	c.ns.Store(l.Epoch*1e6 + int64(time.Hour))
	g, err := NewGenerator(GeneratorConfig{Layout: l, Clock: c, OnRollback: leafRule{}, CountRollbacks: true,
		Sleep: c.sleep})
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(l.MaxTick())
	const goroutines = 8
	all := make([][]ID, goroutines)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for n := 0; ; n++ {
				run, _, err := g.Try(3, 0)
				if errors.Is(err, ErrClosed) {
					return
				}
				for k := range run.Len {
					all[i] = append(all[i], run.At(k))
				}
				switch {
				case i > 0:
				case n == 4000:
					g.Close()
				case n%500 == 499:
					c.step(-100 * time.Millisecond)
				default:
					c.step(20 * time.Microsecond)
				}
			}
		})
	}
	wg.Wait()
	ids := slices.Concat(all...)
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		t.Errorf("%d IDs, %d different", len(ids), n)
	}
	if g.Rollbacks() < 5 {
		t.Errorf("%d rollbacks counted", g.Rollbacks())
	}
	end := g.Close()
	for _, id := range ids {
		if f, _ := l.Decode(id); f.Tick >= end {
			t.Fatalf("%+v, Close said %d", f, end)
		}
	}
}
