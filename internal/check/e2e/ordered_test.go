package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// With a lease of 3 s others serve 4 s after the owner has ended. A second more is for a machine that runs other tests.
const (
	ownerLease   = 3 * time.Second
	takenOver    = 5 * time.Second
	drainSilence = time.Second // 100 ms on a machine that is idle
)

// The owner of an ordered sequence is killed, starts again within its lease, drains, and is stopped.
func TestOrderedSequencesSurviveTheEndOfTheOwner(t *testing.T) {
	t.Parallel()
	f := newFleet(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "500ms") // clients do not hang up
	ends := []struct {
		what     string
		by       func(*node)
		most     time.Duration
		from, to int64
	}{
		{"kill -9", (*node).kill, takenOver, 0, 0},
		{"flaked drain", func(n *node) { <-n.drain(); n.proc.exit() }, drainSilence, 0, 0},
		{"SIGTERM", (*node).stop, drainSilence, 0, 0},
	}
	for i, end := range ends {
		owner, from := f.owner(plain), f.ids.now()
		end.by(owner)
		for _, n := range f.others(owner) {
			f.answered(n, from)
		}
		f.silentFor(end.what, from, end.most)
		ends[i].from, ends[i].to = from, f.ids.now()
		owner.start().ready()
		from = f.ids.now() // sections move to the node that has started
		pass(t.Context(), time.Second)
		for _, n := range f.nodes {
			f.answered(n, f.ids.now())
		}
		f.silentFor("the node is back after "+end.what, from, drainSilence)
	}
	owner, from := f.owner(plain), f.ids.now()
	owner.kill()
	owner.start()
	for _, n := range f.nodes {
		f.answered(n, from)
	}
	f.silentFor("kill -9 and a start at once", from, takenOver)
	f.check()
	for _, end := range ends {
		missing, lost := order.Missing(f.requests, plain, end.from, end.to)
		t.Logf("%s: %d values are missing, requests for %d were not answered", end.what, missing, lost)
		if end.most == drainSilence && missing > lost {
			t.Errorf("%s has left a gap of %d values, but requests for only %d were not answered", end.what,
				missing, lost)
		}
	}
}

// Nodes are restarted one after the other, and each gets its sections back.
func TestOrderedSequencesSurviveRollingRestarts(t *testing.T) {
	long(t)
	f := newFleet(t, zktest.Chroot(t, zktest.Shared(t)))
	began := f.ids.now()
	for i := range 12 {
		n, from := f.nodes[i%len(f.nodes)], f.ids.now()
		n.stop()
		for _, other := range f.others(n) {
			f.answered(other, f.ids.now())
		}
		n.start().ready()
		pass(t.Context(), time.Second) // sections move
		for _, n := range f.nodes {
			f.answered(n, f.ids.now())
		}
		f.silentFor("a restart of "+n.name, from, drainSilence)
	}
	ended := f.ids.now()
	f.check()
	if missing, lost := order.Missing(f.requests, plain, began, ended); missing > lost {
		t.Errorf("%d values are missing, but requests for only %d were not answered", missing, lost)
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

// The owner stands still, and others take over if that lasts. When it goes on, it finds requests that were sent
// meanwhile, and must not answer them with values that it held.
func TestOrderedSequencesSurviveAnOwnerThatStandsStill(t *testing.T) {
	t.Parallel()
	f := newFleet(t, zktest.Chroot(t, zktest.Shared(t))).program()
	for _, d := range []time.Duration{time.Second, 4 * time.Second} {
		f.standsStill(d)
	}
	f.check()
}

func TestOrderedSequencesSurviveAnOwnerThatStandsStillForLong(t *testing.T) {
	long(t)
	f := newFleet(t, zktest.Chroot(t, zktest.Shared(t))).program()
	for _, ms := range []time.Duration{2000, 2600, 2900, 3500, 7000, 20_000} {
		f.standsStill(ms * time.Millisecond)
	}
	f.check()
}

func (f *fleet) standsStill(d time.Duration) {
	f.t.Helper()
	owner, from := f.owner(plain), f.ids.now()
	owner.proc.freeze()
	pass(f.t.Context(), d)
	owner.proc.thaw()
	for _, n := range f.nodes {
		f.answered(n, f.ids.now())
	}
	f.silentFor("SIGSTOP for "+d.String(), from, takenOver)
}

// The owner is cut off from ZooKeeper, in several ways, and all nodes are. An owner issues until its lease ends.
func TestOrderedSequencesSurviveACutFromZooKeeper(t *testing.T) {
	t.Parallel()
	f := newFleet(t, zktest.Chroot(t, zktest.Shared(t))).program()
	for what, cut := range map[string]func(*faultnet.Link){
		"a black hole": (*faultnet.Link).BlackHole, "lost answers": (*faultnet.Link).DropReplies,
		"lost requests": (*faultnet.Link).DropRequests,
	} {
		owner, from := f.owner(plain), f.ids.now()
		owner.links.each(cut)
		eventually(t, "another node is the owner", func() bool { return f.owner(plain) != owner })
		for _, n := range f.others(owner) {
			f.answered(n, f.ids.now())
		}
		f.silentFor("the owner has "+what, from, takenOver)
		owner.links.heal()
		f.answered(owner, f.ids.now())
	}
	from := f.ids.now()
	for _, n := range f.nodes {
		n.links.each((*faultnet.Link).Cut)
	}
	pass(t.Context(), ownerLease+time.Second)
	to := f.ids.now()
	for _, n := range f.nodes {
		n.links.heal()
	}
	all := func(int) bool { return true }
	if len(f.during(from+int64(ownerLease/4), from+int64(ownerLease/2), all)) == 0 {
		t.Error("without ZooKeeper the owner does not issue for half of its lease")
	}
	if late := f.during(from+int64(ownerLease)+3e8, to, all); len(late) > 0 {
		t.Errorf("%d values were issued when the lease was over, the first by %s", len(late), late[0])
	}
	for _, n := range f.nodes {
		f.answered(n, f.ids.now())
	}
	f.check()
}
