package coordinator

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
)

// A new node need not wait if a peer, whose heartbeats have had no gap for the confirming time, has written twice since
// the node has taken its slot.
func TestPeerVouches(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(l *lab, peer *member)
		want   bool
	}{
		"for long enough": {func(l *lab, peer *member) { peer.beatsFor(labConfirm) }, true},
		"not for long":    {func(l *lab, peer *member) { peer.beatsFor(labConfirm / 2) }, false},
		"after a gap": {func(l *lab, peer *member) {
			peer.beatsFor(labConfirm)
			l.pass(2*limits.DefaultHeartbeat + time.Millisecond)
			peer.mustBeat()
		}, false},
		"after a loss that others have noticed": {func(l *lab, peer *member) {
			peer.beatsFor(labConfirm)
			l.raised()
			peer.mustBeat()
		}, false},
		"after a loss": {func(l *lab, peer *member) {
			copied := l.mem.Snapshot()
			peer.beatsFor(labConfirm)
			l.putBack(copied)
			peer.mustBeat()
			peer.mustBeat()
			if _, err := Thaw(l.Context(), l.admin, l.cluster()); err != nil {
				l.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 64)
			peer := l.serving("P")
			tc.before(l, peer)
			a := l.node("A")
			a.must(a.register())
			a.mustBeat()
			a.peers()
			if a.h.vouched() {
				t.Error("by a write from before")
			}
			l.pass(time.Second)
			peer.mustBeat()
			a.peers()
			if a.h.vouched() {
				t.Error("by a write that may have been late")
			}
			l.pass(time.Second)
			peer.mustBeat()
			a.peers()
			if a.h.vouched() != tc.want {
				t.Fatalf("vouched: %t", a.h.vouched())
			}
			if got := a.mustBeat().Confirmed; got != tc.want {
				t.Errorf("confirmed: %t", got)
			}
			l.disjoint()
		})
	}
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

// raised raises the incarnation, as another node does that has noticed a loss of data.
func (l *lab) raised() {
	l.Helper()
	cl := l.cluster()
	cl.Incarnation++
	if _, err := l.admin.Set(l.Context(), clusterPath, cl.marshal(), store.AnyVersion); err != nil {
		l.Fatal(err)
	}
}

// A new node whose clock is ahead raises the horizon with its first write. Its peers do not freeze registration for as
// long before they have read that, so none can vouch.
func TestNobodyVouchesBeyondTheHorizon(t *testing.T) {
	for wait, want := range map[time.Duration]bool{labLease: true, 2 * labW: false} {
		l := newLab(t, 64)
		peer, a := l.serving("P"), l.node("A")
		peer.beatsFor(labConfirm)
		a.wait = wait
		a.must(a.register())
		for range 3 {
			a.mustBeat()
			a.peers()
			l.pass(time.Second)
			peer.mustBeat()
		}
		a.peers()
		if a.h.vouched() != want {
			t.Errorf("a lease of %s: vouched %t", wait, !want)
		}
		l.disjoint()
	}
}
