package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

const year = 365 * 24 * time.Hour

// A node whose clock is wrong is refused at every start, and leaves no record behind.
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
