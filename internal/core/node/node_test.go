package node

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/worker"
)

// ZooKeeper answers, but too slowly for the node to register. That must not end the start.
func TestSlowZooKeeperDoesNotEndTheStart(t *testing.T) {
	r := newRig(t)
	var attempts atomic.Int64
	began, slow := time.Now(), r.Mem.Session()
	slow.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Op == "create" && c.Path == "/tickets/n-" && attempts.Add(1) > 0 {
			return memzk.FailBefore
		}
		return memzk.NoFault
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
		{"another lease", true, func(c *Config) { d := time.Hour; c.Settings.Lease = &d },
			"lease 1h0m0s differs from the cluster's "},
		{"a slower heartbeat, and no ZooKeeper", true, func(c *Config) {
			c.Heartbeat = time.Minute
			c.Store.(*memzk.Session).Partition()
		}, "the heartbeat interval 1m0s is too long: "},
		{"clock a minute back", true, func(c *Config) { c.Clock.(*memcluster.Machine).Step(-time.Minute) },
			"from ZooKeeper and peers ("},
		{"clock an hour ahead", false, func(c *Config) { c.Clock.(*memcluster.Machine).Step(time.Hour) },
			"from ZooKeeper and peers ("},
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

// A node that has served in a cluster knows that ZooKeeper has lost it, and says so. It makes no other one.
func TestLostClusterIsNotTakenForAnUnknownOne(t *testing.T) {
	r := newRig(t)
	if err := r.start().untilReady().stop(); err != nil {
		t.Fatal(err)
	}
	r.Mem.Wipe()
	err := r.start(func(c *Config) { c.Bootstrap = false }).ended()
	lost, is := errors.AsType[*LostClusterError](err)
	if !is || lost.Name != "test" || !errors.Is(err, coordinator.ErrNoCluster) {
		t.Errorf("%v", err)
	}
}

// A node that must refuse names the cause, and serves again when the cause is gone.
func TestRefusesForTheCauseAndRecovers(t *testing.T) {
	second, burning := time.Second, new(atomic.Bool)
	for cause, row := range map[Cause]struct{ breaks, mends func(*rig, *running) }{
		CauseReservedBound: {func(*rig, *running) { burning.Store(true) }, func(*rig, *running) { burning.Store(false) }},
		CauseLeaseExpired: {func(_ *rig, n *running) { n.session.Partition() },
			func(_ *rig, n *running) { n.session.Heal() }},
		CauseClockBehind: {func(r *rig, n *running) {
			r.Step(-3 * time.Millisecond)
			n.next() // has waited
			r.Step(-time.Second)
		}, func(r *rig, _ *running) { r.Step(time.Second) }},
	} {
		t.Run(string(cause), func(t *testing.T) {
			r := newRig(t)
			r.Disk.FailSyncs = func() error {
				if burning.Load() {
					return errors.New("disk on fire")
				}
				return nil
			}
			n := r.start(func(c *Config) { c.Settings.Lease = &second }).untilReady()
			n.next()
			row.breaks(r, n)
			n.until("a refusal", func() bool { return n.Ready() != nil })
			if got := n.cause(); got != cause {
				t.Errorf("refuses for %s", got)
			}
			row.mends(r, n)
			n.untilReady()
			n.stop()
			if got := n.cause(); got != CauseStopping {
				t.Errorf("stopped, and refuses for %s", got)
			}
		})
	}
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
			r.Mem = memzk.New(func() int64 { return r.Wall() / 1e6 }) // the leader's clock steps too
			n := r.start().untilReady()
			beats := func(count int64) {
				n.until("heartbeats", func() bool { return n.Snapshot().Counts.Heartbeats >= count })
			}
			for range 30 { // half a minute, faster than bounds may follow
				r.Step(900 * time.Millisecond)
				beats(n.Snapshot().Counts.Heartbeats + 1)
				_, _ = n.Reserve(t.Context(), 1)
			}
			n.untilReady()
			if _, err := n.Reserve(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			before := n.tenure.Worker
			r.Step(-row.back)
			if row.another {
				n.until("another worker", func() bool {
					w := n.Snapshot().Worker // before Ready: the node may exchange its worker between both
					return w != nil && *w != before && n.Ready() == nil
				})
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
