package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/zktest"
)

// heartbeats waits until a node's reports reach ZooKeeper, or no longer do.
func (n *node) heartbeats(reach bool) {
	n.site.t.Helper()
	want := map[bool]string{true: "true", false: "false"}[reach]
	n.until("zookeeper_ok "+want, func() bool { return n.stat("zookeeper_ok") == want })
}

// The leader dies, the next one freezes, and at last nobody is left: not one
// GET fails, and when ZooKeeper is back the nodes are who they were.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	zk := zktest.Three(t)
	// The usual reserve: no question may fail, on a busy machine either.
	s := newSite(t, zk.Addr(), "--reserve", "3s")
	s.build = forLoad()
	nodes := s.startedTogether(3)
	var loads []*load
	before := map[*node]identity{}
	for _, n := range nodes {
		before[n] = n.identity()
		loads = append(loads, n.clients(2))
	}
	reported := func() {
		t.Helper()
		for _, n := range nodes {
			n.heartbeats(true)
		}
		for _, l := range loads {
			l.progress()
		}
	}

	reported()
	dead := zk.Leader(t)
	zk.Kill(dead)
	zk.WaitServing(t)
	reported()
	zk.Start(dead)
	zk.WaitServing(t)

	frozen := zk.Leader(t)
	zk.Freeze(frozen)
	zk.WaitServing(t)
	reported()
	zk.Thaw(frozen)
	zk.WaitServing(t)

	// Frozen one and all: they accept, and never answer.
	for i := range 3 {
		zk.Freeze(i)
	}
	for _, n := range nodes {
		n.heartbeats(false)
	}
	for _, l := range loads {
		l.progress()
	}
	for i := range 3 {
		zk.Thaw(i)
	}
	zk.WaitServing(t)
	reported()

	for _, l := range loads {
		l.flawless()
	}
	for _, n := range nodes {
		if now := n.identity(); now != before[n] {
			t.Errorf("%s: %+v, was %+v", n.name, now, before[n])
		}
	}
}
