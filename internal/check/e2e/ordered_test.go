package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Others serve ownerLease and a second after the owner has ended. A second more is for a machine that runs other tests.
const (
	takenOver    = 5 * time.Second
	drainSilence = time.Second // 100 ms on a machine that is idle
)

// The owner of an ordered sequence ends, stands still, or is cut off from ZooKeeper, and comes back. Another node takes
// over. An owner that goes on finds requests that were sent meanwhile, and must not answer them with values that it held.
func TestOrderedSequencesSurviveFaultsOfTheOwner(t *testing.T) {
	t.Parallel()
	f := newFleet(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "500ms").program() // clients do not hang up
	again := func(n *node) { n.start().ready() }
	gapless := map[string][2]int64{}
	for _, row := range []struct {
		what       string
		away, back func(*node)
		most       time.Duration // without values, while the owner is away
		backMost   time.Duration // likewise, when it is back
	}{
		{"kill -9", (*node).kill, again, takenOver, drainSilence},
		{"flaked drain", func(n *node) { <-n.drain(); n.proc.exit() }, again, drainSilence, drainSilence},
		{"SIGTERM", (*node).stop, again, drainSilence, drainSilence},
		{"SIGSTOP", func(n *node) { n.proc.freeze() }, func(n *node) { n.proc.thaw() }, takenOver, takenOver},
		{"a black hole", func(n *node) { n.links.each((*faultnet.Link).BlackHole) },
			func(n *node) { n.links.heal() }, takenOver, takenOver},
		{"kill -9 and a start at once", func(n *node) { n.kill(); n.start() }, func(*node) {}, takenOver, takenOver},
	} {
		owner, from := f.owner(plain), f.ids.now()
		row.away(owner)
		for _, n := range f.others(owner) {
			f.answered(n, from)
		}
		f.silentFor(row.what, from, row.most)
		if row.most == drainSilence {
			gapless[row.what] = [2]int64{from, f.ids.now()}
		}
		from = f.ids.now()
		row.back(owner)
		pass(t.Context(), time.Second) // sections move to the node that is back
		for _, n := range f.nodes {
			f.answered(n, f.ids.now())
		}
		f.silentFor("the node is back after "+row.what, from, row.backMost)
	}
	f.withoutZooKeeper()
	f.end()
	for what, w := range gapless {
		if missing, lost := order.Missing(f.values.all(plain), plain, w[0], w[1]); missing > lost {
			t.Errorf("%s has left a gap of %d values, but requests for only %d were not answered", what, missing, lost)
		}
	}
}

// withoutZooKeeper cuts all nodes off from ZooKeeper. The owner issues until its lease ends.
func (f *fleet) withoutZooKeeper() {
	f.t.Helper()
	from := f.ids.now()
	for _, n := range f.nodes {
		n.links.cut()
	}
	pass(f.t.Context(), ownerLease+time.Second)
	to := f.ids.now()
	for _, n := range f.nodes {
		n.links.heal()
	}
	all := func(int) bool { return true }
	if len(f.during(from+int64(ownerLease/4), from+int64(ownerLease/2), all)) == 0 {
		f.t.Error("without ZooKeeper the owner does not issue for half of its lease")
	}
	if late := f.during(from+int64(ownerLease)+3e8, to, all); len(late) > 0 {
		f.t.Errorf("%d values were issued when the lease was over, the first by %s", len(late), late[0])
	}
	for _, n := range f.nodes {
		f.answered(n, f.ids.now())
	}
}

// answered waits until the node has answered a request for each name that was sent after a time.
func (f *fleet) answered(n *node, from int64) {
	f.t.Helper()
	eventually(f.t, n.name+" answers", func() bool {
		names := map[string]bool{}
		for _, r := range f.during(from, f.ids.now(), func(node int) bool { return node == n.id }) {
			names[r.Name] = true
		}
		return len(names) == len(allNames)
	})
}
