package node

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memfile"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/worker"
)

// rig is a ZooKeeper in memory, a disk in memory and a clock that a test can step.
type rig struct {
	t     *testing.T
	clock *testClock
	mem   *store.Mem
	disk  *memfile.File
	cfg   Config
}

// testClock reads the machine's clocks. Its wall clock can be stepped.
type testClock struct {
	base time.Time
	wall atomic.Int64 // how far the wall clock has been stepped, ns
}

// steppedClock returns a clock whose wall clock has been stepped.
func steppedClock(by time.Duration) *testClock {
	c := &testClock{base: time.Now()}
	c.wall.Store(int64(by))
	return c
}

func (c *testClock) Wall() int64          { return time.Now().UnixNano() + c.wall.Load() }
func (c *testClock) Mono() int64          { return int64(time.Since(c.base)) }
func (c *testClock) Boot() int64          { return c.Mono() }
func (c *testClock) step(d time.Duration) { c.wall.Add(int64(d)) }

func newRig(t *testing.T) *rig {
	r := &rig{t: t, clock: &testClock{base: time.Now()}, disk: memfile.New(nil)}
	// The leader's clock is the machine's, unstepped.
	r.mem = store.NewMem(func() int64 { return time.Now().UnixMilli() })
	none := time.Duration(0)
	r.cfg = Config{
		Cluster: "test", Bootstrap: true, Clock: r.clock,
		Settings: Settings{ConfirmTime: &none}, InMemory: true,
		Heartbeat: 20 * time.Millisecond, CallTimeout: 200 * time.Millisecond, Reserve: 300 * time.Millisecond,
		Labels: coordinator.Labels{Name: "n", Version: "test"},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: testWriter{t}, DisableTime: true}),
	}
	return r
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// running is a node that a test has started.
type running struct {
	*Node
	t       *testing.T
	session *store.MemSession
	cancel  context.CancelFunc
	done    chan error
}

// node returns a node on the rig's disk, unless change gives it another, and its session.
func (r *rig) node(change ...func(*Config)) (*Node, *store.MemSession) {
	r.t.Helper()
	cache, err := localcache.New(r.disk, localcache.Fingerprint{})
	if err != nil {
		r.t.Fatal(err)
	}
	cfg, session := r.cfg, r.mem.Session()
	cfg.Store, cfg.Cache = session, cache
	for _, c := range change {
		c(&cfg)
	}
	n, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return n, session
}

// starting returns a node that refuses, because Run has not been called.
func starting(t *testing.T, change ...func(*Config)) *Node {
	t.Helper()
	n, _ := newRig(t).node(change...)
	return n
}

// start runs a node as node returns it.
func (r *rig) start(change ...func(*Config)) *running {
	r.t.Helper()
	n, session := r.node(change...)
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{Node: n, t: r.t, session: session, cancel: cancel, done: make(chan error, 1)}
	go func() { run.done <- n.Run(ctx) }()
	r.t.Cleanup(func() { run.stop() })
	return run
}

// stop stops the node cleanly and returns Run's error.
func (r *running) stop() error {
	r.cancel()
	err := <-r.done
	r.done <- err
	return err
}

// confirmedAndStopped starts a node, and stops it cleanly once it has confirmed.
func (r *rig) confirmedAndStopped() *running {
	r.t.Helper()
	n := r.start().untilReady()
	n.until("confirmed", n.isConfirmed)
	if err := n.stop(); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// until waits for a condition. It fails the test after 10 s, or if the node ends first.
func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case err := <-r.done:
			r.done <- err
			r.t.Fatalf("waiting for %s: the node ended: %v", what, err)
		case <-deadline:
			r.t.Fatalf("waited in vain for %s; %s; %v", what, r.Worker(), r.Ready())
		case <-tick.C:
		}
	}
}

func (r *running) untilReady() *running {
	r.t.Helper()
	r.until("ready", func() bool { return r.Ready() == nil })
	return r
}

func (r *running) next() worker.Fields {
	r.t.Helper()
	run, err := r.Reserve(context.Background(), 1)
	if err != nil {
		r.t.Fatal(err)
	}
	f, err := worker.Leaf().Decode(run.First)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// cause returns why the node makes no ID now.
func (r *running) cause() Cause {
	r.t.Helper()
	_, err := r.Reserve(context.Background(), 1)
	refused, ok := errors.AsType[*Refusal](err)
	if !ok {
		r.t.Fatalf("not refused: %v", err)
	}
	return refused.Cause
}

func TestServesAndKeepsItsWorkerOverRestarts(t *testing.T) {
	r := newRig(t)
	first := r.start().untilReady()
	before := first.next()
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	if cause := first.cause(); cause != CauseStopping {
		t.Errorf("stopped, and refuses for %s", cause)
	}
	second := r.start().untilReady()
	after := second.next()
	if after.Worker != before.Worker || after.Tick <= before.Tick {
		t.Errorf("%+v after %+v", after, before)
	}
	if !strings.Contains(second.Worker(), "term=2") || !strings.Contains(second.Worker(), "state=serving") {
		t.Error(second.Worker())
	}
}

func (n *Node) isConfirmed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.confirmed
}

// ZooKeeper answers, but too slowly for the node to register. That must not end the start.
func TestSlowZooKeeperDoesNotEndTheStart(t *testing.T) {
	r := newRig(t)
	var attempts atomic.Int64
	began, slow := time.Now(), r.mem.Session()
	slow.SetFault(func(c store.Call) store.Fault {
		if c.Op == "create" && c.Path == "/tickets/n-" && attempts.Add(1) > 0 {
			return store.FailBefore
		}
		return store.NoFault
	})
	const timeout = 100 * time.Millisecond
	n := r.start(func(c *Config) { c.Store, c.StartTimeout = slow, timeout })
	n.until("attempts for longer than it waits for a silent ZooKeeper", func() bool {
		return attempts.Load() > 3 && time.Since(began) > 3*timeout && n.cause() == CauseZooKeeperSlow
	})
	slow.SetFault(nil)
	n.untilReady()
}

func TestStartsThatAreRefused(t *testing.T) {
	rows := []struct {
		name   string
		before bool // run a node on the same disk first
		change func(*Config)
		wrong  string
	}{
		{"no cluster and none asked for", false, func(c *Config) { c.Bootstrap = false }, "cluster not found"},
		{"another cluster's state", true, func(c *Config) { c.Cluster = "other" }, `belongs to cluster "test"`},
		{"another layout", true, func(c *Config) { l := worker.Twitter(); c.Settings.Layout = &l }, "layout time="},
		{"another lease", true, func(c *Config) { d := time.Hour; c.Settings.Lease = &d }, "lease 1h0m0s differs from the cluster's "},
		{"a slower heartbeat, and no ZooKeeper", true, func(c *Config) {
			c.Heartbeat = time.Minute
			c.Store.(*store.MemSession).Partition()
		}, "the heartbeat interval 1m0s is too long: "},
		{"clock a minute back", true, func(c *Config) { c.Clock = steppedClock(-time.Minute) }, "from ZooKeeper and peers ("},
		{"clock an hour ahead", false, func(c *Config) { c.Clock = steppedClock(time.Hour) }, "from ZooKeeper and peers ("},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			if row.before {
				if err := r.start().untilReady().stop(); err != nil {
					t.Fatal(err)
				}
			}
			n := r.start(row.change)
			err := n.ended()
			if err == nil || !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%v; want one about %q", err, row.wrong)
			}
		})
	}
}

func TestDiskThatFailsServesToTheBoundAndRecovers(t *testing.T) {
	r := newRig(t)
	var burning atomic.Bool
	r.disk.FailSyncs = func() error {
		if burning.Load() {
			return errors.New("disk on fire")
		}
		return nil
	}
	n := r.start().untilReady()
	burning.Store(true)
	n.until("a refusal", func() bool { return n.Ready() != nil })
	if cause := n.cause(); cause != CauseReservedBound {
		t.Errorf("refuses for %s", cause)
	}
	burning.Store(false)
	n.untilReady()
}

func TestNodeRefusesAfterLeaseExpiryAndRecovers(t *testing.T) {
	r := newRig(t)
	second := time.Second
	n := r.start(func(c *Config) { c.Settings.Lease = &second }).untilReady()
	n.session.Partition()
	n.until("a refusal", func() bool { return n.Ready() != nil })
	if cause := n.cause(); cause != CauseLeaseExpired {
		t.Errorf("refuses for %s", cause)
	}
	n.session.Heal()
	n.untilReady()
}

func TestSmallRollbackIsWaitedOutAndLargeOnesRefused(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	n.next()
	r.clock.step(-3 * time.Millisecond)
	n.next()
	r.clock.step(-time.Second)
	n.until("a refusal", func() bool { return n.Ready() != nil })
	if cause := n.cause(); cause != CauseClockBehind {
		t.Errorf("a second back: %s", cause)
	}
	r.clock.step(time.Second)
	n.untilReady()
}

// Where rollbacks are counted, a node keeps its worker after a small rollback. After a large
// one it takes another worker: with the old worker a restart would refuse.
func TestLargeCountedRollbackTakesANewWorker(t *testing.T) {
	l := worker.Leaf()
	l.TimeBits, l.RollbackBits = 40, 1
	for _, row := range []struct {
		back    time.Duration
		another bool
	}{{2500 * time.Millisecond, false}, {20 * time.Second, true}} {
		t.Run(row.back.String(), func(t *testing.T) {
			r := newRig(t)
			r.cfg.Settings.Layout = &l
			r.mem = store.NewMem(func() int64 { return r.clock.Wall() / 1e6 }) // the leader's clock steps too
			n := r.start().untilReady()
			beats := func(count int64) {
				n.until("heartbeats", func() bool { return n.Snapshot().Counts.Heartbeats >= count })
			}
			for range 30 { // half a minute, faster than bounds may follow
				r.clock.step(900 * time.Millisecond)
				beats(n.Snapshot().Counts.Heartbeats + 1)
				_, _ = n.Reserve(t.Context(), 1)
			}
			n.untilReady()
			if _, err := n.Reserve(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			before := n.held.worker
			r.clock.step(-row.back)
			if row.another {
				n.until("another worker", func() bool { return n.Ready() == nil && n.Snapshot().Worker != nil && *n.Snapshot().Worker != before })
			} else {
				beats(n.Snapshot().Counts.Heartbeats + 5)
			}
			if _, err := n.Reserve(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if after := *n.Snapshot().Worker; (after != before) != row.another {
				t.Errorf("worker %d after %d", after, before)
			}
			if err := n.stop(); err != nil {
				t.Fatal(err)
			}
			r.start().untilReady()
		})
	}
}
