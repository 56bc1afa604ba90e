package e2e

import (
	"regexp"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// These match the refusals of a node whose reserved bound has run out: for any reason, and because
// the process was suspended.
const (
	noBound    = `-NOTREADY reserved bound reached: .* reason=reserved-bound-reached`
	stoodStill = `-NOTREADY reserved bound reached: the process stood still, and is writing a new reserved bound reason=reserved-bound-reached`
)

// session returns the ZooKeeper session of a worker's live lock, or 0 if there is no lock.
func (r *records) session(worker int) int64 {
	r.t.Helper()
	lock, _ := r.read(livePath(worker), nil)
	return lock.Owner
}

// live waits until the node's live lock is of a session other than but, and returns that session.
func (n *node) live(r *records, but int64) (session int64) {
	n.site.t.Helper()
	n.until("live by a new session", func() bool {
		session = r.session(n.worker())
		return session != 0 && session != but
	})
	return session
}

// failedOnlyBy ends the load. It fails the test if a request failed for a reason that does not
// match the regular expression.
func (l *load) failedOnlyBy(like string) {
	l.node.site.t.Helper()
	allowed := regexp.MustCompile("^(" + like + ")$")
	for _, failed := range l.end().failed {
		if !allowed.MatchString(failed) {
			l.node.site.t.Errorf("%s: %s", l.node.name, failed)
			return
		}
	}
}

// A node's link to ZooKeeper fails in various ways, for longer than a session lasts and shorter
// than the lease. No GET fails. The node connects again by itself and still has its worker.
func TestDisconnectionWithinTheLeaseLosesNoRequest(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(*faultnet.Link){
		"black hole":   (*faultnet.Link).BlackHole,
		"answers lost": (*faultnet.Link).DropReplies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
			records := s.records()
			n := s.node()
			network := n.network()
			n.start().ready()
			before := n.identity()
			load := n.clients(1)
			session := n.live(records, 0)
			load.progress()

			broken(network)
			n.heartbeats(false)
			n.until("its session has expired", func() bool { return records.session(before.worker) != session })
			load.progress()
			network.Delay(0, 0)
			network.Heal()
			n.live(records, session)
			n.heartbeats(true)
			load.progress()
			load.flawless()
			if now := n.identity(); now != before {
				t.Errorf("%+v, was %+v", now, before)
			}
			if slot := records.slot(before.worker); slot.Node != before.uuid || slot.Term != int64(before.term) {
				t.Errorf("the slot is %+v, the node %+v", slot, before)
			}
		})
	}
}

// ZooKeeper accepts connections and never answers. Nodes that serve, stop or start do not wait for
// it beyond a deadline, and neither do commands.
func TestFrozenZooKeeperBlocksNothing(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--reserve", "3s")
	nodes := s.startedTogether(2)
	serving, again := nodes[0], nodes[1]
	before, beforeAgain := serving.identity(), again.identity()
	load := serving.clients(2)
	again.get(100)

	zk.Freeze(0)
	for _, n := range nodes {
		n.heartbeats(false)
	}
	again.kill()
	again.start().ready().get(100)
	began := time.Now()
	again.stop()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the stop took %s", took)
	}
	again.start().ready().get(100)
	s.started("--start-timeout", "1s").fails(3, `ZooKeeper did not answer within 1s, and this node cannot start without it`)
	if r := execute(t, s.build.binary(t), "status", "--zk", s.connect); r.code != 3 || r.took > 15*time.Second {
		t.Errorf("status: exit %d after %s\n%s%s", r.code, r.took, r.stdout, r.stderr)
	}
	load.progress()

	zk.Thaw(0)
	for _, n := range nodes {
		n.heartbeats(true)
	}
	load.progress()
	load.flawless()
	if now := serving.identity(); now != before {
		t.Errorf("%+v, was %+v", now, before)
	}
	again.get(100)
	if now := again.identity(); now.worker != beforeAgain.worker || now.uuid != beforeAgain.uuid || now.term <= beforeAgain.term {
		t.Errorf("%+v, was %+v", now, beforeAgain)
	}
}
