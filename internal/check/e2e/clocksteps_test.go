package e2e

import (
	"strconv"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

const year = 365 * 24 * time.Hour

// stepped returns a node with a clock of its own. ZooKeeper's clock shows true time.
func stepped(t *testing.T) (*node, *ownclock.Clock) {
	t.Helper()
	// The default reserve is used, because no request may fail even on a busy machine.
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	clock := new(ownclock.Clock)
	return s.node().on(clock).start().ready(), clock
}

// killedOff kills the node while its clock is wrong and calls restart. Then it sets the clock
// right and checks that the node resumes above its reserved bound.
func (n *node) killedOff(clock *ownclock.Clock, restart func()) {
	t := n.site.t
	t.Helper()
	before := n.identity()
	n.kill()
	m := n.stored().Record.MMs
	restart()
	clock.Set(0)
	if !n.proc.running() {
		n.start()
	}
	n.firstAfter(m)
	n.goesBy(0)
	n.made(n.get(1)[0], 0)
	if after := n.identity(); after.worker != before.worker || after.uuid != before.uuid {
		t.Errorf("%+v after %+v", after, before)
	}
}

// By Leaf's rule the node waits until the clock has caught up. No request fails.
func TestSmallStepBackIsWaitedOut(t *testing.T) {
	t.Parallel()
	n, clock := stepped(t)
	load := n.clients(2)
	for range 20 {
		load.progress()
		clock.Step(-3 * time.Millisecond)
	}
	load.progress()
	load.flawless()
	n.goesBy(-60 * time.Millisecond)
	n.killedOff(clock, func() { n.start().ready().get(100) })
}

// The node refuses at once and says how far its clock is behind. It serves again when the clock
// has caught up.
func TestStepBackRefusesUntilCaughtUp(t *testing.T) {
	t.Parallel()
	n, clock := stepped(t)
	before := n.identity()
	watch := n.watch()
	watch.serves()
	for range 5 {
		clock.Step(-50 * time.Millisecond)
		watch.serves()
	}
	// On a busy machine the watch may not ask within the 50 ms of a step.
	for try := 0; watch.refusals() == 0 && try < 20; try++ {
		clock.Step(-50 * time.Millisecond)
		watch.serves()
	}
	if watch.refusals() == 0 {
		t.Error("nothing was refused")
	}
	clock.Set(0) // a step ahead that is shorter than a leap
	watch.serves()
	n.goesBy(0)
	watch.ends(behindLastID)
	for _, text := range watch.refused {
		if ms, _ := strconv.Atoi(numbers.FindString(text)); ms > 50 {
			t.Errorf("refused with %q after a step of 50 ms", text)
		}
	}
	if after := n.identity(); after != before {
		t.Errorf("%+v after %+v", after, before)
	}
	clock.Step(-50 * time.Millisecond)
	n.killedOff(clock, func() { n.start().ready().get(100) })
}

// The node's clock goes back by an hour and ZooKeeper's does not. The node refuses at once.
// After three heartbeats it reports a wrong clock and extends no bound any more. It serves
// again by itself once the clock is right.
func TestHourBackRefusesUntilCorrected(t *testing.T) {
	t.Parallel()
	n, clock := stepped(t)
	records := n.site.records()
	before := n.identity()
	watch := n.watch()
	watch.serves()
	clock.Step(-time.Hour)
	wrong := n.refusesLike(wrongClock)
	if ms, _ := strconv.Atoi(wrong[0]); (time.Duration(ms)*time.Millisecond + time.Hour).Abs() > time.Minute {
		t.Errorf("it says that its clock is %d ms off", ms)
	}
	n.state("refusing")
	m, h := n.stored().Record.MMs, records.slot(before.worker).LeaseUntil
	n.site.report(n)
	if r, slot := n.stored().Record, records.slot(before.worker); r.MMs != m || slot.LeaseUntil != h {
		t.Errorf("it pushes its bounds by a wrong clock: M %d to %d, H %d to %d", m, r.MMs, h, slot.LeaseUntil)
	}
	clock.Set(0)
	watch.serves()
	n.goesBy(0)
	watch.ends(behindLastID, wrongClock)
	if after := n.identity(); after != before || watch.refusals() == 0 {
		t.Errorf("%+v after %+v, %d refusals", after, before, watch.refusals())
	}

	clock.Step(-time.Hour)
	n.refusesLike(behindLastID + "|" + wrongClock)
	n.killedOff(clock, func() { n.startIsRefused(wrongAtStart) })
}

// The node's clock leaps ahead and ZooKeeper's does not. The node does not follow the leap. No
// request fails, and all timestamps agree with ZooKeeper's clock.
func TestUnconfirmedLeapIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, leap := range []time.Duration{time.Hour, year} {
		t.Run(leap.String(), func(t *testing.T) {
			t.Parallel()
			n, clock := stepped(t)
			before := n.identity()
			load := n.clients(2)
			load.progress()
			for range 2 {
				clock.Step(leap)
				n.until("it has noticed", func() bool {
					ms, err := strconv.ParseInt(n.stat("clock_unfollowed_leap_ms"), 10, 64)
					return err == nil && (time.Duration(ms)*time.Millisecond-leap).Abs() < time.Second
				})
				n.site.report(n)
				load.progress()
				n.goesBy(0)
				n.made(n.get(1)[0], 0)
				clock.Step(-leap)
				n.until("it is over", func() bool { return n.stat("clock_unfollowed_leap_ms") == "0" })
				load.progress()
				n.goesBy(0)
			}
			if after := n.identity(); after != before {
				t.Errorf("%+v after %+v", after, before)
			}
			clock.Step(leap)
			load.progress()
			load.flawless()
			// A process that starts takes the wall clock's time, and compares it with
			// ZooKeeper's clock.
			n.killedOff(clock, func() { n.startIsRefused(wrongAtStart) })
		})
	}
}
