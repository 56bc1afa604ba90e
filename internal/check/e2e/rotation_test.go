package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A node acquires a new worker after a step back at most four times within a lease, counted
// across restarts. After that it waits. Otherwise clocks that jump back and forth would use up
// the workers of a cluster.
func TestNewWorkerAfterStepBackAtMostFourTimes(t *testing.T) {
	t.Parallel()
	var clock ownclock.Clock
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.node().on(&clock).start().ready()
	for round := range 4 {
		n.get(100)
		before := n.identity()
		clock.Step(-4 * time.Second)
		n.until("a fresh worker", func() bool { id, err := n.tryIdentity(); return err == nil && id.worker != before.worker })
		n.ready().get(100)
		clock.Step(4 * time.Second) // a leap ahead, which ZooKeeper confirms
		n.goesBy(0)
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
