package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestFreezeByHand(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	hand := l.operator()
	was, is, err := hand.Freeze(t.Context(), 0)
	if want := l.cl.nextHorizon(l.now); err != nil || was.FrozenUntil != 0 || is.FrozenUntil != want ||
		l.cluster() != is {
		t.Fatalf("%+v, %+v, %v", was, is, err)
	}
	frozen := wantErrAs[*FrozenError](t, l.node("B").register())
	if frozen.Until != is.FrozenUntil || frozen.By != "test" ||
		!strings.Contains(frozen.Error(),
			"until "+time.UnixMilli(is.FrozenUntil).UTC().Format(time.RFC3339)+" by operator test") ||
		len(l.children(ticketsPath)) != 1 {
		t.Errorf("%+v, tickets %q", frozen, l.children(ticketsPath))
	}
	if beat := a.mustBeat(); beat.FrozenUntil != is.FrozenUntil || beat.FrozenBy != "test" { // its own lease runs
		t.Errorf("%+v", beat)
	}
	a.must(a.halt())
	a.must(a.start())
	a.confirm()

	// A longer freeze moves the end, a shorter one does not.
	for _, row := range []struct {
		d     time.Duration
		until int64
	}{
		{time.Hour, is.FrozenUntil},
		{48 * time.Hour, l.now + 48*hourMs},
	} {
		_, is, err = hand.Freeze(t.Context(), row.d)
		if err != nil || is.FrozenUntil != row.until {
			t.Errorf("%+v: %+v, %v", row, is, err)
		}
	}
	// A holder that notices a loss does not shorten the operator's freeze.
	l.remove(SlotPath(0))
	if beat := a.mustBeat(); beat.FrozenUntil != is.FrozenUntil || beat.FrozenBy != "" {
		t.Errorf("%+v", beat)
	}
	if cl := l.cluster(); cl.FrozenUntil != is.FrozenUntil {
		t.Errorf("%+v", cl)
	}
	if _, err := Thaw(t.Context(), l.admin, l.cluster()); err != nil {
		t.Fatal(err)
	}
	l.serving("C")
	// A freeze that has ended does not count for the next one.
	if _, _, err = hand.Freeze(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	l.pass(time.Hour)
	_, is, err = hand.Freeze(t.Context(), time.Minute)
	if err != nil || is.FrozenUntil != l.now+millis(time.Minute) {
		t.Errorf("%+v, %v", is, err)
	}
}

// Thaw frees slots whose record is missing, or is a Lost record. It leaves the records of holders alone, and a freeze
// that its caller has not seen.
func TestThaw(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	for w := range 3 {
		l.remove(SlotPath(w))
	}
	a.mustBeat() // puts its own back, and freezes
	l.remove(SlotPath(1))
	l.put(2, Slot{LeaseUntil: l.now + millis(labW), Lost: true})
	c := l.node("C")
	wantErrAs[*FrozenError](t, c.register())
	seen := l.cluster()
	freed, err := Thaw(t.Context(), l.admin, seen)
	if err != nil || freed != 2 || l.cluster().FrozenUntil != 0 {
		t.Fatalf("freed %d, %+v, %v", freed, l.cluster(), err)
	}
	for w := 1; w <= 3; w++ {
		if s := l.slot(w); l.cluster().JudgeFree(s, false, l.now, l.now) != Free {
			t.Errorf("slot %d: %+v", w, s)
		}
	}
	if s := l.slot(0); s.Node != a.claim.Node || !s.Confirmed {
		t.Errorf("the holder's: %+v", s)
	}
	if _, err := Thaw(t.Context(), l.admin, seen); !errors.Is(err, ErrFreezeChanged) {
		t.Errorf("another freeze than the one that was seen: %v", err)
	}
	a.mustBeat()
	c.must(c.register())
	c.confirm()
	l.disjoint()
}

// Thaw frees slots whose record is missing, or is a Lost record. It leaves the records of holders alone.
func TestThawFreesWhatWasLost(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	for w := range 3 {
		l.remove(SlotPath(w))
	}
	a.mustBeat() // puts its own back, and freezes
	l.remove(SlotPath(1))
	l.put(2, Slot{LeaseUntil: l.now + millis(labW), Lost: true})
	freed, err := Thaw(t.Context(), l.admin, l.cluster())
	if err != nil || freed != 2 {
		t.Fatalf("freed %d, %v", freed, err)
	}
	for w := 1; w <= 3; w++ {
		if s := l.slot(w); l.cluster().JudgeFree(s, false, l.now, l.now) != Free {
			t.Errorf("slot %d: %+v", w, s)
		}
	}
	if s := l.slot(0); s.Node != a.claim.Node || !s.Confirmed {
		t.Errorf("the holder's: %+v", s)
	}
	a.mustBeat()
}
