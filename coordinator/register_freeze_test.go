package coordinator

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/memzk"
)

// A holder freezes registration after a new node has acquired a slot. The new node does not confirm it.
func TestFreezeWhileConfirming(t *testing.T) {
	for name, atOnce := range map[string]bool{"before the heartbeat": false, "within it": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			m := l.node("M")
			m.must(m.register())
			l.pass(labConfirm)
			freeze := func() {
				l.remove(SlotPath(0))
				a.mustBeat()
			}
			raced := !atOnce
			if !atOnce {
				freeze()
			}
			m.hook = func(c memzk.Call) memzk.Fault {
				if c.Op == "multi" && !raced {
					raced = true
					freeze()
				}
				return memzk.NoFault
			}
			// M gives the slot up, rather than wait until the freeze ends.
			_, err := m.beat()
			wantFenced(t, err)
			if m.issue() || l.slot(1).Confirmed {
				t.Error("confirmed in a freeze")
			}
			l.disjoint()
		})
	}
}

// A holder freezes registration while a new node acquires a slot, the holder's or another one. The new node does not
// get it.
func TestFreezeWhileTaking(t *testing.T) {
	for name, slots := range map[string]int{"its holder": 1, "another slot's": 2} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, slots)
			b := l.serving("B")
			lost := slots - 1
			l.put(lost, Slot{Released: true, Node: "old", Nonce: "old", Term: 1, LeaseUntil: l.now}) // an older copy
			if lost != 0 {
				l.remove(SlotPath(0))
			}
			l.forget()
			was := l.slot(lost)
			m := l.node("M")
			raced := false
			m.hook = func(c memzk.Call) memzk.Fault {
				if c.Op == "multi" && !raced {
					raced = true
					b.mustBeat()
				}
				return memzk.NoFault
			}
			l.remove(lockPath(0))
			f := wantErrAs[*FrozenError](t, m.register())
			if !raced || f.Until == 0 || l.slot(0).Node != b.claim.Node || len(l.children(ticketsPath)) != 1 {
				t.Errorf("%+v, %+v, %q", f, l.slot(0), l.children(ticketsPath))
			}
			if lost != 0 && !same(l.slot(lost), was) {
				t.Errorf("taken: %+v", l.slot(lost))
			}
			l.disjoint()
		})
	}
}
