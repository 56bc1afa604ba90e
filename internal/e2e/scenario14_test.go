package e2e

import (
	"strconv"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/ownclock"
	"github.com/flaked/flaked/internal/zktest"
)

// five are nodes of which the last is on a clock of its own.
func five(t *testing.T, connect string) (four []*node, fifth *node, clock *ownclock.Clock) {
	t.Helper()
	// The usual reserve: no question may fail, on a busy machine either.
	s := newSite(t, connect, "--reserve", "3s")
	clock = new(ownclock.Clock)
	return s.startedTogether(4), s.node().on(clock), clock
}

// voters waits until a node compares its clock with ZooKeeper's and this many
// others.
func (n *node) voters(peers int) {
	n.site.t.Helper()
	n.until("it compares with all of the others", func() bool { return n.stat("clock_voters") == strconv.Itoa(peers+1) })
}

// One of five clocks is off by an hour, when its node starts and while it runs:
// that one refuses, and not one question to the four fails.
func TestScenario14OneOfFiveClocksIsOff(t *testing.T) {
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

	// Back: refused at once, and after three rounds as wrong.
	watch := fifth.watch()
	watch.serves()
	clock.Set(-time.Hour)
	fifth.refusesLike(behindLastID + "|" + wrongClock)
	fifth.refusesLike(wrongClock)
	fifth.state("refusing")
	clock.Set(0)
	watch.serves()
	watch.ends(behindLastID, wrongClock)

	// Ahead: not followed, so right.
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

	// A restart on it is refused, as often as it is tried, and nobody minds.
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

// A clock that runs ahead little by little is followed, until three rounds of
// most others find it wrong. Then the node refuses, and pushes no bound. Back
// among the others it goes on: by a fresh worker, where its IDs are ahead by more
// than that takes.
func TestScenario14AClockThatRunsAway(t *testing.T) {
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
	m, h := fifth.stored().Record.MMs, records.slot(before.worker).H
	fifth.site.report(fifth)
	if r, slot := fifth.stored().Record, records.slot(before.worker); r.MMs != m || slot.H != h {
		t.Errorf("it pushes its bounds by a wrong clock: M %d to %d, H %d to %d", m, r.MMs, h, slot.H)
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
		`-NOTREADY settling reason=(waiting-for-a-forgotten-owner|took-a-fresh-worker-after-the-clock-went-back)`)
	for _, l := range loads {
		l.flawless()
	}
}

// It is ZooKeeper's clock that is off, by an hour either way: one against four,
// so no node minds, and no question fails. Whoever starts asks the four too. (On
// three servers: one alone has no epochs, and cannot show that it lost nothing while
// its clock leapt over the short leases that new nodes have.)
func TestScenario14ZooKeepersClockIsOff(t *testing.T) {
	t.Parallel()
	var theirs ownclock.Clock
	zk := zktest.ThreeOn(t, [3]*ownclock.Clock{&theirs, &theirs, &theirs})
	// A report votes for three heartbeats. On a machine that is so busy that the
	// four's are older, ZooKeeper would be left alone to say what time it is.
	s := newSite(t, zk.Addr(), "--reserve", "3s", "--heartbeat", "500ms", "--settle", "1s")
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
