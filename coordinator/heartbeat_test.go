package coordinator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// A node that started without ZooKeeper reports its restart, and the write is not acknowledged. It may find its own
// write at the next heartbeat, and must not be fenced by it.
func TestRestartReportIsNotFencedByItself(t *testing.T) {
	for name, fault := range map[string]memzk.Fault{"not applied": memzk.FailBefore,
		"not acknowledged": memzk.FailAfter} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			a.crash()
			l.pass(2*limits.DefaultHeartbeat + time.Millisecond) // a gap
			a.startAlone()
			a.hook = faulty(fault, 0, 2, touching("set", SlotPath(0)))
			for range 2 {
				l.pass(time.Second)
				if _, err := a.beat(); err == nil {
					t.Fatal("acknowledged")
				}
			}
			a.hook = nil
			beat := a.mustBeat()
			if s := l.slot(0); beat.Confirmed || beat.wait != labConfirm || s.Nonce != a.claim.Nonce || s.Confirmed ||
				a.h.stage == Alone {
				t.Errorf("%+v, %+v", beat, s)
			}
			a.confirm()
			l.disjoint()
		})
	}
}

// A server that lags behind does not have the node's record yet. A heartbeat must not take that for a loss of data.
func TestHeartbeatThroughALaggingServer(t *testing.T) {
	l := newLab(t, 4)
	early := l.Mem.Snapshot()
	a := l.serving("A")
	l.pass(time.Second)
	a.mustBeat()
	a.sess.LagTo(early)
	for range 2 {
		if beat := a.mustBeat(); beat.Restored || beat.FrozenUntil != 0 || l.cluster().FrozenUntil != 0 {
			t.Errorf("%+v", beat)
		}
		l.pass(time.Second)
	}
}

// ZooKeeper denies access to a slot. Heartbeat, Stop and Register return the error, and Register leaves no ticket.
func TestDenied(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	deny := &denying{Store: a.sess, path: SlotPath(0)}
	a.co.Store = deny
	l.pass(time.Second)
	if _, err := a.beat(); !errors.Is(err, store.ErrDenied) || !a.issue() {
		t.Error(err)
	}
	if err := a.co.Stop(t.Context(), a.end(), 1); !errors.Is(err, store.ErrDenied) {
		t.Error(err)
	}
	b := l.node("B")
	b.co.Store = &denying{Store: b.sess, path: SlotPath(1)}
	if err := b.register(); !errors.Is(err, store.ErrDenied) || len(l.children(ticketsPath)) != 1 {
		t.Errorf("%v, %q", err, l.children(ticketsPath))
	}
}

// denying is a Store that denies reads of one path.
type denying struct {
	store.Store
	path string
}

func (d *denying) Get(ctx context.Context, path string) ([]byte, store.Stat, error) {
	if path == d.path {
		return nil, store.Stat{}, store.ErrDenied
	}
	return d.Store.Get(ctx, path)
}

func (d *denying) GetAll(ctx context.Context, paths ...string) ([]store.Record, error) {
	if slices.Contains(paths, d.path) {
		return nil, store.ErrDenied
	}
	return d.Store.GetAll(ctx, paths...)
}

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
	m.must(m.co.AskPeers(m.ctx()))
	if _, err := m.co.ReadPeerClocks(m.ctx(), m.claim.Worker, Beat{}); err != nil {
		m.Fatal(err)
	}
}

// These tests let a process stand still between its last look at the clock and its write, as SIGSTOP does. The write
// arrives after others have acted, and after ZooKeeper was put back to older data in which the record still has the
// version that the write expects.

// lateGrant makes the node's next write of its slot arrive only when the one after it is on the way.
func (m *member) lateGrant() {
	writes := 0
	m.hook = func(c memzk.Call) memzk.Fault {
		if !c.Write() || !c.Touches(SlotPath(m.h.Worker)) {
			return memzk.NoFault
		}
		switch writes++; writes {
		case 1:
			return memzk.FailLate
		case 2:
			m.Mem.Deliver()
		}
		return memzk.NoFault
	}
}

// A grant whose write was not acknowledged arrives after the next one was begun. It is the node's own.
func TestLateGrantIsOurs(t *testing.T) {
	for name, before := range map[string]func(l *lab, a *member){
		"a restart":       func(l *lab, a *member) { a.crash(); l.expire(); a.startAlone() },
		"a record's loss": func(l *lab, _ *member) { l.remove(SlotPath(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			a.mustBeat()
			before(l, a)
			a.lateGrant()
			if _, err := a.beat(); !errors.Is(err, store.ErrUnreachable) {
				t.Fatal(err)
			}
			a.mustBeat()
			l.disjoint()
		})
	}
}

// A disk that takes long to save the claim of a restart makes a gap, and so does a write that arrives late. The process
// does not go on at once then.
func TestLateRestartConfirms(t *testing.T) {
	late := func(l *lab) { l.pass(2*limits.DefaultHeartbeat + time.Millisecond) }
	for name, slow := range map[string]func(a *member){
		"disk": func(a *member) { a.disk.saving = func(Claim) { late(a.lab) } },
		"write": func(a *member) {
			a.hook = func(call memzk.Call) memzk.Fault {
				if call.Write() && call.Touches(SlotPath(0)) {
					late(a.lab)
				}
				return memzk.NoFault
			}
		},
	} {
		l := newLab(t, 2)
		a := l.serving("A")
		a.mustBeat()
		a.crash()
		slow(a)
		a.must(a.start())
		a.disk.saving, a.hook = nil, nil
		if a.confirmsIn() != labConfirm || a.mustBeat().Confirmed {
			t.Errorf("%s: confirms in %s", name, a.confirmsIn())
		}
	}
}
