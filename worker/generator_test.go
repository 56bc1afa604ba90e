package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// manualClock is a clock that the test moves. Sleeping on it moves it too.
type manualClock struct{ ns atomic.Int64 }

func (c *manualClock) Now() int64           { return c.ns.Load() }
func (c *manualClock) step(d time.Duration) { c.ns.Add(int64(d)) }
func (c *manualClock) sleep(_ context.Context, d time.Duration) error {
	c.step(d)
	return nil
}

type systemClock struct{}

func (systemClock) Now() int64 { return time.Now().UnixNano() }

// leafRule is the same as the zero RollbackPolicy of timeguard.
type leafRule struct{}

func (leafRule) Wait(behind, waited time.Duration) (time.Duration, bool) {
	return 2 * behind, waited == 0 && behind <= 5*time.Millisecond
}

func newManual(t testing.TB, change func(*GeneratorConfig)) (*Generator, *manualClock) {
	t.Helper()
	c := &manualClock{}
	c.ns.Store(time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).UnixNano())
	cfg := GeneratorConfig{Layout: Leaf(), Worker: 7, Clock: c, OnRollback: leafRule{}, Sleep: c.sleep,
		SequenceStart: StartZero}
	if change != nil {
		change(&cfg)
	}
	g, err := NewGenerator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(cfg.Layout.MaxTick())
	return g, c
}

func mustNext(t testing.TB, g *Generator) ID {
	t.Helper()
	id, err := g.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestFirstSequenceOfATick(t *testing.T) {
	rows := []struct {
		name  string
		start SequenceStart
		made  int64 // in the tick before, which began at `first`
		first int64
		want  int64
	}{
		{"random", StartRandom, 1, 42, 42},
		{"zero", StartZero, 10, 0, 0},
		{"carry on", StartCarryOn, 10, 0, 10},
		{"carry on, past the middle", StartCarryOn, 3000, 0, 0},
		{"random, after a full tick", StartRandom, 4096 - 42, 42, 0},
		{"carry on, after a full tick", StartCarryOn, 4096, 0, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			g, c := newManual(t, func(cfg *GeneratorConfig) {
				cfg.SequenceStart, cfg.Rand = r.start, func(uint32) uint32 { return 42 }
			})
			if f, _ := Leaf().Decode(mustNext(t, g)); f.Sequence != r.first {
				t.Fatalf("first of all: %d, want %d", f.Sequence, r.first)
			}
			for range r.made - 1 {
				mustNext(t, g)
			}
			c.step(time.Millisecond)
			if f, _ := Leaf().Decode(mustNext(t, g)); f.Sequence != r.want {
				t.Fatalf("%d, want %d", f.Sequence, r.want)
			}
		})
	}
}

// Each tick has all the numbers that its segment and sequence can hold, once.
func TestATickHasAllOfItsNumbers(t *testing.T) {
	rows := []struct {
		layout string
		step   ID
		run    int // the longest
	}{
		{"time=30,worker=10,sequence=12", 1, 4096},
		{"sonyflake", 1 << 16, 256},
		{"time=30,sequence=6,datacenter=3,worker=10", 1 << 13, 64},
		{"time=30,segment=3,worker=10,sequence=5", 1, 32},
		{"time=30,worker=10,segment=3,sequence=5", 1, 32},
		{"time=30,segment=3,sequence=5,worker=10", 1 << 10, 32},
		{"time=30,worker=10,sequence=0", 1, 1},
	}
	for _, r := range rows {
		t.Run(r.layout, func(t *testing.T) {
			l, err := ParseLayout(r.layout)
			if err != nil {
				t.Fatal(err)
			}
			g, c := newManual(t, func(cfg *GeneratorConfig) { cfg.Layout = l; cfg.Worker = 7 })
			first := l.tickAt(l.Epoch*1e6 + 1)
			c.ns.Store(l.Epoch*1e6 + 1)
			for n := int64(0); n < l.Sequences(); {
				run, _, err := g.Try(1<<20, 0)
				if err != nil || run.Len != r.run || run.Step != r.step {
					t.Fatalf("%+v, %v; want %d with a step of %d", run, err, r.run, r.step)
				}
				for i := range run.Len {
					f, err := l.Decode(run.At(i))
					want := Fields{Tick: first, Worker: 7, Segment: n >> l.SequenceBits,
						Sequence: n & (1<<l.SequenceBits - 1)}
					if err != nil || f != want {
						t.Fatalf("%+v, %v; want %+v", f, err, want)
					}
					n++
				}
			}
			if run, pause, err := g.Try(1, 0); run.Len != 0 || pause.For <= 0 || err != nil {
				t.Errorf("a full tick gave %+v, %+v, %v", run, pause, err)
			}
		})
	}
}

func TestRollback(t *testing.T) {
	rows := []struct {
		name   string
		step   time.Duration
		behind time.Duration // 0: served, after waiting
	}{
		{"within the tick", -300 * time.Microsecond, 0},
		{"3 ms", -3 * time.Millisecond, 0},
		{"5 ms, the most that is waited for", -5 * time.Millisecond, 0},
		{"just over", -5*time.Millisecond - 1, 5*time.Millisecond + 1},
		{"an hour", -time.Hour, time.Hour},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			g, c := newManual(t, nil)
			c.ns.Store(c.ns.Load() / 1e6 * 1e6)
			before := mustNext(t, g)
			c.step(r.step)
			if ready := g.Ready(); (ready == nil) != (r.behind == 0) {
				t.Errorf("ready: %v", ready)
			}
			id, err := g.Next(context.Background())
			if r.behind == 0 {
				if err != nil || id <= before {
					t.Fatalf("%d after %d, %v", id, before, err)
				}
				return
			}
			var behind *BehindError
			if !errors.As(err, &behind) || behind.Behind != r.behind {
				t.Fatalf("%d, %v; want behind by %s", id, err, r.behind)
			}
			c.step(r.behind) // the clock recovers
			if id := mustNext(t, g); id <= before {
				t.Fatalf("%d after %d", id, before)
			}
		})
	}
}

// overtaken is a clock with which another goroutine can make an ID after the clock was read
// and before the reading is used.
type overtaken struct {
	*manualClock
	other func() // nil: nobody
}

func (c *overtaken) Now() int64 {
	now := c.manualClock.Now()
	if other := c.other; other != nil {
		c.other = nil
		other()
	}
	return now
}

func TestConcurrentReservationIsNotARollback(t *testing.T) {
	for _, row := range []struct {
		name string
		pass time.Duration
	}{
		{"within the tick", 0},
		{"in the next tick", time.Millisecond},
		{"after more than a clock may go back", time.Minute},
	} {
		var c *overtaken
		g, _ := newManual(t, func(cfg *GeneratorConfig) {
			c = &overtaken{manualClock: cfg.Clock.(*manualClock)}
			cfg.Clock = c
		})
		mustNext(t, g)
		c.step(time.Hour)
		var theirs ID
		c.other = func() {
			c.step(row.pass)
			theirs = mustNext(t, g)
		}
		run, pause, err := g.Try(1, 0)
		if err != nil || run.Len != 1 || pause != (Pause{}) {
			t.Errorf("%s: %+v, %+v, %v", row.name, run, pause, err)
			continue
		}
		f, err := Leaf().Decode(run.First)
		if err != nil || run.First <= theirs || f.Tick != Leaf().tickAt(c.manualClock.Now()) || f.Sequence != 1 {
			t.Errorf("%s: %+v after %d, %v", row.name, f, theirs, err)
		}
	}
}

// Leaf's rule waits once. If the clock is still behind then, the request is refused.
func TestLeafRuleWaitsOnce(t *testing.T) {
	sleeps := 0
	g, c := newManual(t, func(cfg *GeneratorConfig) {
		cfg.Sleep = func(context.Context, time.Duration) error { sleeps++; return nil }
	})
	mustNext(t, g)
	c.step(-3 * time.Millisecond)
	var behind *BehindError
	if _, err := g.Next(context.Background()); !errors.As(err, &behind) || sleeps != 1 {
		t.Fatalf("%v after %d sleeps", err, sleeps)
	}
}

func TestNewGeneratorRefuses(t *testing.T) {
	ok := GeneratorConfig{Layout: Leaf(), Clock: systemClock{}, OnRollback: leafRule{}}
	for name, change := range map[string]func(*GeneratorConfig){
		"no clock":                func(c *GeneratorConfig) { c.Clock = nil },
		"no rule":                 func(c *GeneratorConfig) { c.OnRollback = nil },
		"no layout":               func(c *GeneratorConfig) { c.Layout = Layout{} },
		"worker beyond its bits":  func(c *GeneratorConfig) { c.Worker = 1024 },
		"datacenter without bits": func(c *GeneratorConfig) { c.Datacenter = 1 },
		"floor beyond the layout": func(c *GeneratorConfig) { c.Floor = 1 << 41 },
		"floor before the epoch":  func(c *GeneratorConfig) { c.Floor = -1 },
		"less than a tick lent":   func(c *GeneratorConfig) { c.Borrow = time.Microsecond },
		"a debt":                  func(c *GeneratorConfig) { c.Borrow = -time.Second },
		"rollbacks without bits":  func(c *GeneratorConfig) { c.CountRollbacks = true },
		"segments without bits":   func(c *GeneratorConfig) { c.SegmentStart = SegmentRandom },
	} {
		cfg := ok
		change(&cfg)
		if _, err := NewGenerator(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// One goroutine sleeps for all that wait for the clock. If its request is cancelled, the others have not waited yet:
// they must not be refused as requests that have.
func TestCancelledSleeperRefusesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		g, c := newManual(t, nil)
		g.cfg.Sleep = func(ctx context.Context, d time.Duration) error {
			if first {
				first = false
				<-ctx.Done()
				return ctx.Err()
			}
			return c.sleep(ctx, d)
		}
		mustNext(t, g)
		c.step(-3 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		next := func(ctx context.Context) <-chan error {
			result := make(chan error, 1)
			go func() { _, err := g.Next(ctx); result <- err }()
			synctest.Wait() // until it sleeps, or waits for the one that does
			return result
		}
		sleeper, other := next(ctx), next(t.Context())
		cancel()
		if err := <-sleeper; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that slept: %v", err)
		}
		if err := <-other; err != nil {
			t.Errorf("the other one: %v", err)
		}
	})
}
