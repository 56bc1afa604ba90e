package coordinator

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// These tests let a process stand still between its last look at the clock and its write, as SIGSTOP does. The write
// arrives after others have acted, and after ZooKeeper was put back to older data in which the record still has the
// version that the write expects.

// stalled makes the next write of the member's slot wait while f runs.
func (m *member) stalled(f func()) {
	m.hook = func(c store.Call) store.Fault {
		if c.Write() && c.Touches(slotPath(m.claim.Worker)) {
			m.hook = nil
			f()
		}
		return store.NoFault
	}
}

// handedOver returns a holder P of slot 0, which has continuity, and a copy of the data in which slot 1 is free. After
// that P's next heartbeat began, and stands still while C takes slot 1 and confirms, is cut off, and the copy is put
// back. then runs before P's heartbeat goes on.
func handedOver(l *lab, then func()) (p, c *member) {
	p, b := l.serving("P"), l.serving("B")
	p.beatsFor(labConfirm)
	b.must(b.leave())
	p.mustBeat()
	copied := l.mem.Snapshot()
	c = l.node("C")
	c.must(c.register())
	l.pass(DefaultHeartbeat)
	p.stalled(func() {
		c.confirm()
		c.sess.Partition()
		c.sess.Expire()
		l.mem.RestoreRunning(copied) // a server that restarts ends P's session, and the heartbeat with it
		l.forget()
		then()
	})
	p.mustBeat()
	return p, c
}

// A peer's write that arrives late shows no continuity of ZooKeeper.
func TestLateWriteDoesNotVouch(t *testing.T) {
	l := newLab(t, 2)
	var d *member
	_, c := handedOver(l, func() {
		d = l.node("D")
		d.must(d.register())
		d.mustBeat()
	})
	d.peers()
	if d.mustBeat(); d.issue() {
		t.Error("D issues at once")
	}
	l.pass(time.Second)
	c.issue()
	c.sess.Heal()
	_, _ = c.beat()
	l.disjoint()
}

// lateGrant makes the node's next write of its slot arrive only when the one after it is on the way.
func (m *member) lateGrant() {
	writes := 0
	m.hook = func(c store.Call) store.Fault {
		if !c.Write() || !c.Touches(slotPath(m.h.Worker)) {
			return store.NoFault
		}
		switch writes++; writes {
		case 1:
			return store.FailLate
		case 2:
			m.mem.Deliver()
		}
		return store.NoFault
	}
}

// A grant whose write was not acknowledged arrives after the next one was begun. It is the node's own.
func TestLateGrantIsOurs(t *testing.T) {
	for name, before := range map[string]func(l *lab, a *member){
		"a restart":       func(l *lab, a *member) { a.crash(); l.expire(); a.startAlone() },
		"a record's loss": func(l *lab, _ *member) { l.remove(slotPath(0)) },
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
	late := func(l *lab) { l.pass(2*DefaultHeartbeat + time.Millisecond) }
	for name, slow := range map[string]func(a *member){
		"disk": func(a *member) { a.disk.saving = func(Claim) { late(a.lab) } },
		"write": func(a *member) {
			a.hook = func(call store.Call) store.Fault {
				if call.Write() && call.Touches(slotPath(0)) {
					late(a.lab)
				}
				return store.NoFault
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
