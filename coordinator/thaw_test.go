package coordinator

import "testing"

// A thaw frees what was lost, records put in its place included, and leaves
// the owners' alone.
func TestThawFreesWhatWasLost(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	for w := range 3 {
		l.remove(slotPath(w))
	}
	a.mustBeat() // puts its own back, and freezes
	l.put(2, Slot{H: l.now + millis(labW), Lost: true})
	freed, err := Thaw(t.Context(), l.admin, l.cluster(), "")
	if err != nil || freed != 2 {
		t.Fatalf("freed %d, %v", freed, err)
	}
	for w := 1; w <= 3; w++ {
		if s := l.slot(w); l.cluster().JudgeFree(s, false, l.now, l.now) != Free {
			t.Errorf("slot %d: %+v", w, s)
		}
	}
	if s := l.slot(0); s.Node != a.claim.Node || !s.Settled {
		t.Errorf("the owner's: %+v", s)
	}
	a.mustBeat()
}
