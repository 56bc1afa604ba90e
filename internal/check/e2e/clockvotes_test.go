package e2e

import (
	"strconv"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// five returns five nodes. Four are started. The fifth has a clock of its own and is not started.
func five(t *testing.T, connect string) (four []*node, fifth *node, clock *ownclock.Clock) {
	t.Helper()
	// The default reserve is used, because no request may fail even on a busy machine.
	s := newSite(t, connect, "--reserve", "3s")
	clock = new(ownclock.Clock)
	return s.startedTogether(4), s.node().on(clock), clock
}

// voters waits until the node compares its clock with those of ZooKeeper's leader and of so many
// peers.
func (n *node) voters(peers int) {
	n.site.t.Helper()
	n.until("it compares with all of the others", func() bool { return n.stat("clock_voters") == strconv.Itoa(peers+1) })
}

// One of five clocks is off by an hour, when its node starts and while it runs. Only that node
// refuses, and no request to the four others fails.
func TestOnlyTheNodeWithTheWrongClockRefuses(t *testing.T) {
	t.Parallel()
	four, fifth, clock := five(t, zktest.Chroot(t, zktest.Shared(t)))
	records := fifth.site.records()
	var loads []*load
	for _, n := range four {
		n.voters(3)
		loads = append(loads, n.clients(1))
	}

	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		clock.Set(off)
		fifth.startIsRefused(wrongAtStart)
	}
	if tickets := records.tickets(); len(tickets) != 4 {
		t.Errorf("those who were refused have left their tickets: %q", tickets)
	}
	clock.Set(0)
	fifth.start().ready().voters(4)
	before := fifth.identity()

	// After a step back the node refuses at once, and reports a wrong clock after three
	// heartbeats.
	watch := fifth.watch()
	watch.serves()
	clock.Set(-time.Hour)
	fifth.refusesLike(behindLastID + "|" + wrongClock)
	fifth.refusesLike(wrongClock)
	fifth.state("refusing")
	clock.Set(0)
	watch.serves()
	watch.ends(behindLastID, wrongClock)

	// The node does not follow a leap ahead, so its time stays right.
	watch = fifth.watch()
	watch.serves()
	clock.Set(time.Hour)
	fifth.until("it has noticed", func() bool { return fifth.stat("clock_unfollowed_leap_ms") != "0" })
	watch.serves()
	clock.Set(0)
	fifth.until("it is over", func() bool { return fifth.stat("clock_unfollowed_leap_ms") == "0" })
	watch.ends()
	if after := fifth.identity(); after != before {
		t.Errorf("%+v after %+v", after, before)
	}

	// Each restart with a wrong clock is refused, without an effect on the other nodes.
	fifth.kill()
	m := fifth.stored().Record.MMs
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		clock.Set(off)
		fifth.startIsRefused(wrongAtStart)
	}
	clock.Set(0)
	fifth.start().firstAfter(m)
	if after := fifth.identity(); after.worker != before.worker || after.uuid != before.uuid {
		t.Errorf("%+v after %+v", after, before)
	}
	for _, l := range loads {
		l.flawless()
	}
}
