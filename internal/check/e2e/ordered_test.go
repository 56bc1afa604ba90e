package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Others serve harness.OwnerLease and a second after the owner has ended. A second more is for a machine that runs
// other tests.
const (
	takenOver    = 5 * time.Second
	drainSilence = time.Second // 100 ms on a machine that is idle
)

// The owner of an ordered sequence ends, stands still, or is cut off from ZooKeeper, and comes back. Another node takes
// over. An owner that goes on finds requests that were sent meanwhile, and must not answer them with values that it
// held.
func TestOrderedSequencesSurviveFaultsOfTheOwner(t *testing.T) {
	t.Parallel()
	f := newFleet(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "500ms").program() // clients do not hang up
	again := func(n *harness.Node) { n.Start().Ready() }
	gapless := map[string][2]int64{}
	for _, row := range []struct {
		what       string
		away, back func(*harness.Node)
		most       time.Duration // without values, while the owner is away, beside what its end takes on a busy machine
		backMost   time.Duration // likewise, when it is back, beside what its start takes
	}{
		{"kill -9", (*harness.Node).Kill, again, takenOver, drainSilence},
		{"flaked drain", func(n *harness.Node) { <-drain(n); n.Proc.Exit() }, again, drainSilence, drainSilence},
		{"SIGTERM", (*harness.Node).Stop, again, drainSilence, drainSilence},
		{"SIGSTOP", func(n *harness.Node) { n.Proc.Freeze() }, func(n *harness.Node) { n.Proc.Thaw() }, takenOver, takenOver},
		{"a black hole", func(n *harness.Node) { n.Links.Each((*faultnet.Link).BlackHole) },
			func(n *harness.Node) { n.Links.Heal() }, takenOver, takenOver},
		{"kill -9 and a start at once", func(n *harness.Node) { n.Kill(); n.Start() }, func(*harness.Node) {}, takenOver, takenOver},
	} {
		owner, from := f.owner(harness.Plain), f.IDs.Now()
		took := timed(func() { row.away(owner) })
		for _, n := range f.others(owner) {
			f.answered(n, from)
		}
		f.silentFor(row.what, from, row.most+took)
		if row.most == drainSilence {
			gapless[row.what] = [2]int64{from, f.IDs.Now()}
		}
		from = f.IDs.Now()
		took = timed(func() { row.back(owner) })
		harness.Pass(t.Context(), time.Second) // sections move to the node that is back
		for _, n := range f.nodes {
			f.answered(n, f.IDs.Now())
		}
		f.silentFor("the node is back after "+row.what, from, row.backMost+took)
	}
	f.withoutZooKeeper()
	f.end()
	for what, w := range gapless {
		if missing, lost := order.Missing(f.Values.All(harness.Plain), harness.Plain, w[0], w[1]); missing > lost {
			t.Errorf("%s has left a gap of %d values, but requests for only %d were not answered", what, missing, lost)
		}
	}
}

// timed returns how long f takes.
func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// withoutZooKeeper cuts all nodes off from ZooKeeper. The owner issues until its lease ends.
func (f *fleet) withoutZooKeeper() {
	f.T.Helper()
	from := f.IDs.Now()
	for _, n := range f.nodes {
		n.Links.Cut()
	}
	harness.Pass(f.T.Context(), harness.OwnerLease+time.Second)
	to := f.IDs.Now()
	for _, n := range f.nodes {
		n.Links.Heal()
	}
	all := func(int) bool { return true }
	if len(f.during(from+int64(harness.OwnerLease/4), from+int64(harness.OwnerLease/2), all)) == 0 {
		f.T.Error("without ZooKeeper the owner does not issue for half of its lease")
	}
	if late := f.during(from+int64(harness.OwnerLease)+3e8, to, all); len(late) > 0 {
		f.T.Errorf("%d values were issued when the lease was over, the first by %s", len(late), late[0])
	}
	for _, n := range f.nodes {
		f.answered(n, f.IDs.Now())
	}
}

// answered waits until the node has answered a request for each name that was sent after a time.
func (f *fleet) answered(n *harness.Node, from int64) {
	f.T.Helper()
	harness.Eventually(f.T, n.Name+" answers", func() bool {
		names := map[string]bool{}
		for _, r := range f.during(from, f.IDs.Now(), func(node int) bool { return node == n.ID }) {
			names[r.Name] = true
		}
		return len(names) == len(allNames)
	})
}
