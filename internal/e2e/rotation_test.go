package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// gaveBack waits until the worker that the node held before is released. It fails the test unless
// the bound in the record is the millisecond after last, the timestamp of its last ID.
func (n *node) gaveBack(worker int, last int64) {
	n.site.t.Helper()
	records := n.site.records()
	n.until("its old worker is given back", func() bool { return records.slot(worker).Released })
	if h := records.slot(worker).LeaseUntil; h <= last || h > last+1 {
		n.site.t.Errorf("%s: worker %d was given back at %d, and its last ID was made at %d", n.name, worker, h, last)
	}
}

// newest returns the highest timestamp of a worker's IDs in the history, Unix ms.
func (h *history) newest(worker int) (at int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.answers {
		if f, err := h.layout.Decode(a.id); err == nil && f.Worker == int64(worker) {
			at = max(at, h.layout.Start(f.Tick))
		}
	}
	return at
}

// asShipped creates a cluster with the default settings, on an ensemble whose servers share one
// clock. The cluster's record is a day old, so that nodes skip the confirming time. In a cluster
// that is younger than ten confirming times, a node confirms for twelve seconds.
func asShipped(t *testing.T, clock *ownclock.Clock) (*zktest.Ensemble, *site) {
	t.Helper()
	zk := zktest.ThreeOn(t, [3]*ownclock.Clock{clock, clock, clock})
	s := newSite(t, zk.Addr())
	s.flags = []string{"--log-format", "text"}
	clock.Set(-24 * time.Hour)
	if r := execute(t, s.build.binary(t), "cluster", "init", "--zk", zk.Addr()); r.code != 0 {
		t.Fatalf("cluster init: exit %d\n%s", r.code, r.stderr)
	}
	clock.Set(0)
	return zk, s
}

// All clocks of a site go back by an hour, including ZooKeeper's. Nodes with the default settings
// acquire new workers and continue to serve. They may refuse for up to three seconds. They refuse
// for some tenths of a second if the cluster is older than the step.
func TestRotationAfterAnHourBack(t *testing.T) {
	t.Parallel()
	var clock ownclock.Clock // of all machines: they have one source of time
	_, s := asShipped(t, &clock)
	var nodes []*node
	for range 3 {
		nodes = append(nodes, s.node().on(&clock).start())
	}
	var watches []*watch
	before := map[*node]identity{}
	for _, n := range nodes {
		before[n] = n.ready().identity()
		watches = append(watches, n.watch())
	}
	for _, w := range watches {
		w.serves()
	}

	clock.Step(-time.Hour)
	for i, n := range nodes {
		watches[i].serves()
		n.goesBy(-time.Hour)
		n.made(n.get(1)[0], -time.Hour)
		old, now := before[n], n.identity()
		if now.worker == old.worker || now.uuid != old.uuid {
			t.Errorf("%s: %+v after %+v", n.name, now, old)
		}
		n.gaveBack(old.worker, s.ids.newest(old.worker))
	}
	for i, w := range watches {
		w.ends(behindLastID, `-NOTREADY confirming reason=(confirming|new-worker-after-rollback)`)
		if w.gap > 3*time.Second {
			t.Errorf("%s: no ID for %s", nodes[i].name, w.gap)
		}
	}
}

// A node acquires a new worker after a step back at most four times within a lease, counted
// across restarts. After that it waits. Otherwise clocks that jump back and forth would use up
// the workers of a cluster.
func TestNewWorkerAfterStepBackAtMostFourTimes(t *testing.T) {
	t.Parallel()
	var clock ownclock.Clock
	zk := zktest.SingleOn(t, &clock)
	s := newSite(t, zk.Addr())
	n := s.node().on(&clock).start().ready()
	holders := map[int]bool{n.worker(): true}
	for round := range 4 {
		n.get(100)
		before := n.identity()
		clock.Step(-time.Hour)
		n.until("a fresh worker", func() bool { id, err := n.tryIdentity(); return err == nil && id.worker != before.worker })
		n.ready().get(100)
		if w := n.worker(); holders[w] {
			t.Errorf("round %d: worker %d again", round, w)
		}
		holders[n.worker()] = true
		if round == 1 {
			n.kill()
			n.start().ready()
		}
	}
	before := n.identity()
	watch := n.watch()
	watch.serves()
	clock.Step(-4 * time.Second)
	n.refusesLike(behindLastID)
	watch.serves()
	watch.ends(behindLastID)
	if watch.gap < 3900*time.Millisecond {
		t.Errorf("IDs after %s, where the clock went back by four seconds", watch.gap)
	}
	if after := n.identity(); after != before {
		t.Errorf("%+v after %+v", after, before)
	}
}
