package seq

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// The last write of a strict sequence is older than a change to another sequence that the node has followed.
func TestChangeOfAnotherSequenceIsNoLossForAStrictOne(t *testing.T) {
	s, a, _ := strictStage(t)
	s.run(4 * time.Second)
	a.ask("invoice", 1, false).first()
	s.create("order", plain(), settings(1000))
	s.run(4 * time.Second) // the node follows
	if v := a.ask("invoice", 1, false).first(); v != 2 || s.incarnation() != 0 {
		t.Errorf("%d in incarnation %d", v, s.incarnation())
	}
}

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

// A name is used in segment mode, deleted, and created again as a strict sequence.
func TestUnansweredLeavesOutAnEarlierLife(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("invoice", plain(), settings(1000))
	a.ask("invoice", 100, false).first()
	s.remove("invoice")
	s.run(15 * time.Minute) // longer than the hold
	d := Definition{Name: "invoice", Mode: Strict, Map: plain(), Settings: settings(1000)}
	if _, err := s.operator().Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	s.run(4 * time.Second)
	a.ask("invoice", 1, false).first()
	if u, _ := a.is.Use("invoice"); u.Unanswered != 0 {
		t.Errorf("%d values are unanswered", u.Unanswered)
	}
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

// ZooKeeper takes most of a second for each write, and many nodes write the same strict sequence.
func TestPauseForOthersIsShorterThanThePatience(t *testing.T) {
	s, a, _ := strictStage(t)
	a.ask("invoice", 1, false).first()
	a.is.cfg.Retry = func(most time.Duration, f func()) time.Duration {
		if most > patience/2 {
			t.Errorf("a pause of %s", most)
		}
		return 0
	}
	series := a.is.named("invoice")
	for k := range 10 {
		series.asStrict().sawWriter(fmt.Sprintf("other%03d", k), situation{nonce: "mine----", sent: a.is.cfg.Mono()})
	}
	a.calls = func(c store.Call) store.Fault {
		if c.Op == "multi" {
			s.now += 900
		}
		return store.NoFault
	}
	a.ask("invoice", 1, false).first()
}

// An operator changes a strict sequence again and again that nobody asks for.
func TestWritersAreForgotten(t *testing.T) {
	s, a, _ := strictStage(t)
	a.ask("invoice", 1, false).first()
	for range 50 {
		s.set("invoice", Change{Settings: func(set *Settings) { set.SupplyMs++ }})
		s.run(4 * time.Second)
	}
	if n := len(a.is.named("invoice").asStrict().writers); n > 2 {
		t.Errorf("%d writers", n)
	}
}

// More requests with keys wait than keys are kept. Two of them have the same key.
func TestOneKeyAmongManyGetsOneValue(t *testing.T) {
	_, a, _ := strictStage(t)
	a.ask("invoice", 1, false).first()
	calls := []*call{a.askKey("k"), a.askKey("k")}
	for i := range maxKeys + 10 {
		a.askKey(fmt.Sprint("other", i))
	}
	if v, again := calls[0].first(), calls[1].first(); v != again {
		t.Errorf("%d and %d", v, again)
	}
}

// The keys cannot be read after ZooKeeper has lost data.
func TestDamagedKeysKeepNothingOfAnEarlierSession(t *testing.T) {
	s, a, _ := strictStage(t)
	s.run(4 * time.Second)
	a.askKey("k").first()
	r := s.view("invoice").record
	if _, err := s.mem.Session().Set(t.Context(), keysPath(r.ID), []byte("x"), store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	a.store.Expire()
	if r := a.askKey("l").reason(); r != Frozen {
		t.Error(r)
	}
	if _, ok := a.is.lastWritten(a.is.named("invoice")); ok {
		t.Error("the node would write by what it wrote in an earlier session")
	}
}
