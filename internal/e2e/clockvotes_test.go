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

// A node follows a clock that runs ahead in small steps. After three heartbeats in which most
// other clocks disagree, it refuses and extends no bound. Once its clock is right it serves
// again. If waiting for its clock would take longer than a new worker does, it acquires a new
// worker.
func TestDriftingClockIsOutvoted(t *testing.T) {
	t.Parallel()
	four, fifth, clock := five(t, zktest.Chroot(t, zktest.Shared(t)))
	records := fifth.site.records()
	var loads []*load
	for _, n := range four {
		loads = append(loads, n.clients(1))
	}
	fifth.start().ready().voters(4)
	before := fifth.identity()
	watch := fifth.watch()
	watch.serves()
	for clock.Offset() < 8*time.Second {
		clock.Step(800 * time.Millisecond)
		fifth.goesBy(clock.Offset())
	}
	wrong := fifth.refusesLike(wrongClock)
	if ms, _ := strconv.Atoi(wrong[0]); (time.Duration(ms)*time.Millisecond - clock.Offset()).Abs() > 3*time.Second {
		t.Errorf("it says that its clock is %d ms off, and it is %s", ms, clock.Offset())
	}
	m, h := fifth.stored().Record.MMs, records.slot(before.worker).LeaseUntil
	fifth.site.report(fifth)
	if r, slot := fifth.stored().Record, records.slot(before.worker); r.MMs != m || slot.LeaseUntil != h {
		t.Errorf("it pushes its bounds by a wrong clock: M %d to %d, H %d to %d", m, r.MMs, h, slot.LeaseUntil)
	}
	ahead := time.Until(time.UnixMilli(fifth.site.ids.newest(before.worker)))
	clock.Set(0)
	watch.serves()
	fifth.goesBy(0)
	fifth.made(fifth.get(1)[0], 0)
	after := fifth.identity()
	t.Logf("its IDs were %s ahead; worker %d, now %d", ahead, before.worker, after.worker)
	if after.uuid != before.uuid {
		t.Errorf("%+v after %+v", after, before)
	}
	watch.ends(wrongClock, behindLastID,
		stoodStill, noAnswer,
		`-NOTREADY confirming reason=(confirming|new-worker-after-rollback)`)
	for _, l := range loads {
		l.flawless()
	}
}

// ZooKeeper's clock is off by an hour in either direction. The nodes outvote it, so no request
// fails. A node that starts compares its clock with the other nodes too. (The test needs three
// servers. A single server has no epochs, so it cannot show that it lost nothing while its
// clock leapt over the short leases of new nodes.)
func TestZooKeepersWrongClockIsOutvoted(t *testing.T) {
	t.Parallel()
	var theirs ownclock.Clock
	zk := zktest.ThreeOn(t, [3]*ownclock.Clock{&theirs, &theirs, &theirs})
	// A report counts for three heartbeats. With short heartbeats on a busy machine the
	// reports of the four could be older, and only ZooKeeper's wrong clock would count.
	s := newSite(t, zk.Addr(), "--reserve", "3s", "--heartbeat", "500ms", "--confirm-time", "1s")
	nodes := s.startedTogether(5)
	var loads []*load
	for _, n := range nodes {
		n.voters(4)
		loads = append(loads, n.clients(1))
	}
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		theirs.Set(off)
		for _, n := range nodes {
			n.until("it sees that ZooKeeper's clock is off", func() bool {
				ms, err := strconv.ParseInt(n.stat("clock_offset_ms"), 10, 64)
				return err == nil && (time.Duration(ms)*time.Millisecond+off).Abs() < time.Minute
			})
		}
		s.report(nodes...)
		for _, n := range nodes {
			n.goesBy(0)
		}
		for _, l := range loads {
			l.progress()
		}
		newcomer := s.started().ready()
		newcomer.made(newcomer.get(1)[0], 0)
		newcomer.stop()
	}
	for _, l := range loads {
		l.flawless()
	}
}
