package node

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/memfile"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

// group creates count nodes, each on its own disk, and runs them as a Group.
func (r *rig) group(count int, change ...func(*Config)) (*NodeGroup, chan error) {
	r.t.Helper()
	var nodes []*Node
	session, clock := r.mem.Session(), timeguard.NewIssuing(r.clock)
	for range count {
		cache, err := localcache.New(memfile.New(nil), localcache.Fingerprint{})
		if err != nil {
			r.t.Fatal(err)
		}
		cfg := r.cfg
		cfg.Store, cfg.Cache, cfg.Issuing = session, cache, clock
		for _, c := range change {
			c(&cfg)
		}
		n, err := New(cfg)
		if err != nil {
			r.t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	g := NewNodeGroup(nodes...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		<-done
	})
	return g, done
}

func untilAll(t *testing.T, g *NodeGroup) {
	t.Helper()
	for _, n := range g.nodes {
		(&running{Node: n, t: t, done: make(chan error, 1)}).untilReady()
	}
}

// A node begins to serve within a tick of which a higher worker has made IDs. It must make no
// ID of that tick: it would be lower than those.
func TestLowerWorkerSkipsATickThatAHigherOneUsed(t *testing.T) {
	r := newRig(t)
	g, _ := r.group(2)
	untilAll(t, g)
	nodes := *g.order.Load()
	low, last := nodes[0].serving.Load(), worker.ID(0)
	for i := range 2_000 {
		if i%2 == 0 {
			nodes[0].serving.Store(nil)
		} else {
			nodes[0].serving.Store(low)
		}
		run, err := g.Reserve(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if run.First <= last {
			t.Fatalf("%d after %d", run.First, last)
		}
		last = run.First
	}
}

// A node has made no ID, and its floor is far ahead of the clock. It must not hold up the other
// node, whether its worker is the lower or the higher one.
func TestFloorAheadDoesNotBlockTheGroup(t *testing.T) {
	r := newRig(t)
	g, _ := r.group(2)
	untilAll(t, g)
	for i, n := range *g.order.Load() {
		own := n.serving.Load()
		n.floorIn(t, time.Hour)
		for range 100 {
			if _, err := g.Reserve(t.Context(), 1); err != nil {
				t.Errorf("beside worker %d of %d: %v", i+1, len(g.nodes), err)
				break
			}
		}
		n.serving.Store(own)
	}
}

// floorIn gives a node a new tenure with a floor that is ahead of its clock by the time given.
func (n *Node) floorIn(t *testing.T, ahead time.Duration) {
	t.Helper()
	tenure := *n.serving.Load()
	floor := n.layout.CeilTick(n.now() + ahead.Milliseconds())
	gen, err := worker.NewGenerator(worker.GeneratorConfig{
		Layout: n.layout, Worker: int64(tenure.worker), Clock: n.clock, Rollback: n.onRollback, Floor: floor,
	})
	if err != nil {
		t.Fatal(err)
	}
	gen.Extend(n.layout.MaxTick())
	tenure.gen = gen
	n.serving.Store(&tenure)
}

// After a rollback a group refuses, even if one of its nodes has made no ID that the clock is
// behind. It must not be ready while it refuses.
func TestGroupIsNotReadyAfterARollback(t *testing.T) {
	r := newRig(t)
	g, _ := r.group(2)
	untilAll(t, g)
	(*g.order.Load())[1].floorIn(t, -time.Hour)
	if _, err := g.Reserve(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	r.clock.step(-time.Second)
	for deadline := time.Now().Add(10 * time.Second); ; {
		_, err := g.Reserve(t.Context(), 1)
		ready := g.Ready()
		if err != nil && ready == nil {
			t.Fatalf("ready, and a request was answered: %v", err)
		}
		if err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the rollback is not noticed")
		}
		runtime.Gosched()
	}
}

// A group has made no ID yet, and its clock goes back by less than it may borrow. It must make
// IDs from its floors on, without a wait or a refusal.
func TestGroupIssuesAtItsFloorsAfterASmallRollback(t *testing.T) {
	r := newRig(t)
	borrow := 3 * time.Second
	r.cfg.Settings.Borrow, r.cfg.Reserve = &borrow, 5*time.Second
	g, _ := r.group(2)
	untilAll(t, g)
	began := g.Now()
	r.clock.step(-2 * time.Second)
	for g.Now().After(began.Add(-time.Second)) { // seen at the next sample
		runtime.Gosched()
	}
	run, pause, err := g.round(1, 0)
	if err != nil || run.Len == 0 || g.Ready() != nil {
		t.Errorf("%d IDs, a pause of %s, %v; ready: %v", run.Len, pause.pause.For, err, g.Ready())
	}
}

// A burst gets more IDs than the ceiling of one worker: each ID once, and those of a worker in
// order. At a low rate all IDs are of the lowest worker.
func TestGroupExceedsTheCeilingOfOneWorker(t *testing.T) {
	r := newRig(t)
	r.cfg.SequenceStart = worker.StartZero
	g, _ := r.group(3)
	untilAll(t, g)
	if got := g.Ceiling(); got != 3*worker.Leaf().Ceiling() {
		t.Errorf("a ceiling of %d", got)
	}
	var ids []worker.ID
	last := map[int64]worker.ID{}
	for len(ids) < 100_000 {
		run, err := g.Reserve(context.Background(), 10_000)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := worker.Leaf().Decode(run.First)
		if run.First <= last[f.Worker] {
			t.Fatalf("%d after %d of worker %d", run.First, last[f.Worker], f.Worker)
		}
		last[f.Worker] = run.At(run.Len - 1)
		for i := range run.Len {
			ids = append(ids, run.At(i))
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) || len(last) != 3 {
		t.Errorf("%d IDs of %d workers, %d different", len(ids), len(last), n)
	}
	// A low rate, after a step ahead to a tick without IDs.
	before := g.Now()
	r.clock.step(50 * time.Millisecond)
	for g.Now().Sub(before) < 40*time.Millisecond { // a step is seen at the next sample
		runtime.Gosched()
	}
	for range 20 {
		run, err := g.Reserve(context.Background(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := worker.Leaf().Decode(run.First); f.Worker != 0 {
			t.Errorf("one of worker %d", f.Worker)
		}
	}
	if s := g.Worker(); !strings.Contains(s, " workers=") {
		t.Errorf("WORKER says %q", s)
	}
	if n := len(g.Snapshots()); n != 3 {
		t.Errorf("%d snapshots", n)
	}
}

// A group counts the waits of reservations for a tick.
func TestGroupCountsTickWaits(t *testing.T) {
	g, _ := newRig(t).group(2)
	if g.Waits() != 0 {
		t.Errorf("%d waits before any reservation", g.Waits())
	}
	untilAll(t, g)
	for deadline := time.Now().Add(30 * time.Second); g.Waits() == 0; {
		if _, err := g.Reserve(context.Background(), 10_000); err != nil || time.Now().After(deadline) {
			t.Fatalf("no reservation has waited: %v", err)
		}
	}
}

// The IDs that one caller gets grow: at the ceiling of all workers, while ticks are borrowed,
// and when the clock goes back. A group refuses a rollback as a single node does.
func TestGroupIDsAscend(t *testing.T) {
	for _, row := range []struct {
		name   string
		layout string
		borrow time.Duration
		back   time.Duration
	}{
		{name: "at the ceiling"},
		{name: "borrowing", borrow: 50 * time.Millisecond},
		{name: "a clock that goes back", back: 500 * time.Millisecond},
		{name: "the same, while it borrows", borrow: 50 * time.Millisecond, back: 500 * time.Millisecond},
		{name: "the worker above a segment", layout: "time=41,worker=10,segment=4,sequence=8"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			r.cfg.Reserve = 5 * time.Second // a stall of the machine must not fail this
			l := worker.Leaf()
			if row.layout != "" {
				var err error
				if l, err = worker.ParseLayout(row.layout); err != nil {
					t.Fatal(err)
				}
			}
			r.cfg.Settings.Layout, r.cfg.Settings.Borrow = &l, &row.borrow
			g, _ := r.group(3)
			untilAll(t, g)
			last, refused := worker.ID(0), 0
			for n := range 3000 {
				if n == 1500 {
					r.clock.step(-row.back)
				}
				run, err := g.Reserve(context.Background(), 1000)
				if no, ok := errors.AsType[*Refusal](err); ok && no.Cause == CauseClockBehind {
					if refused++; refused == 1 {
						r.clock.step(row.back)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if run.First <= last {
					a, _ := l.Decode(last)
					b, _ := l.Decode(run.First)
					t.Fatalf("%+v after %+v", b, a)
				}
				last = run.At(run.Len - 1)
			}
			if (refused > 0) != (row.back > 0) {
				t.Errorf("refused %d times", refused)
			}
		})
	}
}

func TestGroupServesWhileOneNodeRefuses(t *testing.T) {
	g, _ := newRig(t).group(2)
	untilAll(t, g)
	next := func() (int64, error) {
		run, err := g.Reserve(context.Background(), 1)
		f, _ := worker.Leaf().Decode(run.First)
		return f.Worker, err
	}
	lost := g.nodes[0].held
	g.nodes[0].refuse(Refusing, CauseClockWrong)
	for range 10 {
		if w, err := next(); err != nil || w == int64(lost.worker) {
			t.Fatalf("worker %d, %v", w, err)
		}
	}
	if err := g.Ready(); err != nil {
		t.Error(err)
	}
	g.nodes[1].refuse(Refusing, CauseClockWrong)
	_, err := next()
	for _, err := range []error{err, g.Ready()} {
		if e, ok := errors.AsType[*Refusal](err); !ok || e.Cause != CauseClockWrong {
			t.Errorf("%v", err)
		}
	}
}

// There are two workers for three nodes. The two that have one serve. The third one waits, and
// says that all are held. Otherwise the end of one node would end the others, at every restart.
func TestGroupServesWhileOneNodeFindsNoFreeWorker(t *testing.T) {
	l := worker.Leaf()
	l.WorkerBits = 1
	r := newRig(t)
	var sessions []*zkstore.MemSession
	g, done := r.group(3, func(c *Config) {
		c.Settings.Layout, c.StartTimeout = &l, 200*time.Millisecond
		sessions = append(sessions, c.Store.(*zkstore.MemSession))
	})
	waiting := func() (count int) {
		for _, n := range g.nodes {
			if e, ok := errors.AsType[*Refusal](n.Ready()); ok && e.Cause == CauseAllWorkersHeld {
				count++
			}
		}
		return count
	}
	group := &running{Node: g.nodes[0], t: t, done: done}
	group.until("one node without a worker", func() bool { return waiting() == 1 && g.Ready() == nil })
	if _, err := g.Reserve(t.Context(), 1); err != nil {
		t.Error(err)
	}
	// The two go on when ZooKeeper is away for longer than a start may take.
	for _, s := range sessions {
		s.Partition()
	}
	cut := time.Now()
	group.until("the start time-out to pass", func() bool { return time.Since(cut) > time.Second })
	if _, err := g.Reserve(t.Context(), 1); err != nil {
		t.Error(err)
	}
}
