package coordinator

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// A new node waits for the confirming time, however many peers have reported meanwhile.
func TestNewNodeConfirmsAfterTheConfirmingTime(t *testing.T) {
	l := newLab(t, 64)
	peer, a := l.serving("P"), l.node("A")
	peer.beatsFor(2 * labConfirm)
	a.must(a.register())
	for end := l.now + millis(labConfirm); l.now < end; l.pass(labConfirm / 10) {
		peer.mustBeat()
		if a.mustBeat().Confirmed {
			t.Fatalf("confirmed %d ms before the end of the confirming time", end-l.now)
		}
		a.peers()
	}
	if !a.mustBeat().Confirmed {
		t.Error("not confirmed after the confirming time")
	}
	l.disjoint()
}

// A restart within two heartbeats goes on only while the lease runs.
func TestRestartWithoutALeaseConfirms(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	a.wait = 0
	for a.clock()+millis(limits.DefaultHeartbeat) < a.claim.LeaseUntil {
		l.pass(limits.DefaultHeartbeat)
		a.mustBeat()
	}
	h := a.claim.LeaseUntil
	a.crash()
	a.wait, l.now = labLease, h
	a.must(a.start())
	if got := a.confirmsIn(); got != labConfirm || l.slot(0).Confirmed {
		t.Errorf("confirms in %s, the record is %+v", got, l.slot(0))
	}
}

// beatsFor sends heartbeats for d.
func (m *member) beatsFor(d time.Duration) {
	m.Helper()
	for end := m.now + millis(d); m.now < end; {
		m.pass(min(limits.DefaultHeartbeat, time.Duration(end-m.now)*time.Millisecond))
		m.mustBeat()
	}
}

func (m *member) peers() {
	m.Helper()
	if _, err := m.co.Peers(m.ctx(), m.claim.Worker); err != nil {
		m.Fatal(err)
	}
}
