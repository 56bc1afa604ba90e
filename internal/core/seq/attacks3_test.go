package seq

import (
	"testing"
)

// A node that does not know the sequence yet is asked to show it.
func TestShowTakesNoValueOfAStrictSequence(t *testing.T) {
	s, a, _ := strictStage(t)
	a.is.remove(func(*series) bool { return true })
	show(a, "invoice")
	for range 3 {
		_ = a.round()
	}
	if next := s.view("invoice").record.Next; next != 0 {
		t.Errorf("%d positions are taken", next)
	}
	if v := a.ask("invoice", 1, false).first(); v != 1 {
		t.Error(v)
	}
}

func show(a *actor, name string) *call {
	c := &call{a: a, name: name}
	_, c.err = a.is.Show(&c.w, []byte(name), func() { c.woken = true })
	return c
}

// A retry with a key while the sequence is exhausted.
func TestKeyGetsItsValueAlthoughTheSequenceIsExhausted(t *testing.T) {
	s := newStage(t)
	a := s.node()
	m := plain()
	m.Max = 2
	d := Definition{Name: "invoice", Mode: Strict, Map: m, Settings: settings(1000), StartGiven: true}
	if _, err := s.operator().Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	a.ask("invoice", 1, false).first()
	v := a.askKey("k").first()
	if r := a.ask("invoice", 1, false).reason(); r != Exhausted {
		t.Fatal(r)
	}
	if again := a.askKey("k").first(); again != v {
		t.Errorf("%d, not %d", again, v)
	}
}
