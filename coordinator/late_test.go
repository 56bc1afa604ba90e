package coordinator

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

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
			m.mem.Deliver()
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
