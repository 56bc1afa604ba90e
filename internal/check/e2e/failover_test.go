package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// heartbeats waits until the node's heartbeats reach ZooKeeper, or until they fail if reach is
// false.
func (n *node) heartbeats(reach bool) {
	n.site.t.Helper()
	want := map[bool]string{true: "true", false: "false"}[reach]
	n.until("zookeeper_ok "+want, func() bool { return n.stat("zookeeper_ok") == want })
}

// The leader is killed, the next leader is frozen, and finally all servers are frozen. No GET
// fails, and once ZooKeeper is back the nodes have the same identities.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	zk := zktest.Three(t)
	// The default reserve is used, because no request may fail even on a busy machine.
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

	// Frozen servers accept connections and never answer.
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
