package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A node could start from its state directory, and its clock is wrong compared with
// ZooKeeper's. Each start is refused and does not fall back on the state directory. The test
// shifts the leader's timestamps on their way to the node, which has the same effect as a wrong
// clock of the node.
func TestWrongLeaderTimeRefusesEveryStart(t *testing.T) {
	t.Parallel()
	ens := zktest.Single(t)
	network := newNetwork(t, ens.Addr())
	s := newSite(t, network.Addr())
	n := s.started().ready()
	before := n.identity()
	n.get(1000)
	n.kill()
	for range 2 {
		for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
			lie(network, ahead)
			n.startIsRefused(`the clock differs by \S+ from ZooKeeper and peers \(1 of 1 voters say so, 5s is allowed\)\. Set it right`)
		}
	}
	lie(network, 0)
	if after := n.start().ready().identity(); after.worker != before.worker || after.uuid != before.uuid {
		t.Errorf("%+v with the clock right again, %+v before", after, before)
	}
	n.get(1000)
}

// A new node with a wrong clock is refused before it writes a slot.
func TestNewNodeWithWrongClockWritesNoSlot(t *testing.T) {
	t.Parallel()
	network := newNetwork(t, zktest.Shared(t).Addr())
	chroot := zktest.Chroot(t, zktest.Shared(t))[len(zktest.Shared(t).Addr()):]
	s := newSite(t, network.Addr()+chroot)
	lie(network, 10*365*24*time.Hour)
	n := s.started()
	n.fails(1, `the clock differs by \S+ from ZooKeeper and peers`)
	lie(network, 0)
	network.Cut()
	network.Heal()
	records := s.records()
	if tickets := records.tickets(); len(tickets) != 0 {
		t.Errorf("it left its ticket behind: %q", tickets)
	}
	// A bound ten years ahead would keep the slot for ten years.
	n.start().ready()
	if w := n.worker(); w != 1 { // from the second ticket
		t.Errorf("worker %d", w)
	}
	if slot := records.slot(0); slot.Term != 0 || slot.LeaseUntil != 0 {
		t.Errorf("slot 0 was written: %+v", slot)
	}
}

// The two cases above, with the node's own clock set wrong.
func TestWrongNodeClockRefusesEveryStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	records := s.records()
	var clock ownclock.Clock
	n := s.node().on(&clock).start().ready()
	before := n.identity()
	n.get(1000)
	n.kill()
	m := n.stored().Record.MMs
	for range 2 {
		for _, off := range []time.Duration{time.Hour, -time.Hour, 6 * time.Second, -6 * time.Second, year, -year} {
			clock.Set(off)
			n.startIsRefused(wrongAtStart)
		}
	}

	// A new node leaves no records behind. A slot with a bound by a clock that is a year ahead
	// would be held for a year.
	newcomer := s.node().on(&clock)
	for _, off := range []time.Duration{year, -year, time.Hour, -time.Hour} {
		clock.Set(off)
		newcomer.startIsRefused(wrongAtStart)
		if tickets := records.tickets(); len(tickets) != 1 {
			t.Errorf("%s: it left a ticket behind: %q", off, tickets)
		}
	}
	clock.Set(0)
	if after := n.start().ready().identity(); after.worker != before.worker || after.uuid != before.uuid {
		t.Errorf("%+v with the clock right again, %+v before", after, before)
	}
	n.firstAfter(m)
	newcomer.start().ready().get(100)
	now := time.Now().UnixMilli()
	for w := range 8 {
		if slot := records.slot(w); slot.LeaseUntil > now+time.Hour.Milliseconds() {
			t.Errorf("slot %d is bound to %s", w, time.UnixMilli(slot.LeaseUntil))
		}
	}
}
