package seq

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// setTime raises the sequence time, as nodes do.
func (s *stage) setTime(ms int64) {
	s.t.Helper()
	s.changeState(func(st *record.State) { st.Time = max(st.Time, ms) })
}

// jumpTime puts the sequence time ahead, as a node that puts /seq back after a loss may do.
func (s *stage) jumpTime(ms int64) {
	s.t.Helper()
	s.changeState(func(st *record.State) { st.Time += ms; st.Jumped = st.Time })
}

func (s *stage) changeState(f func(*record.State)) {
	s.t.Helper()
	st := s.view("x").State
	f(st)
	s.write(record.StatePath, st.Marshal())
}

func scatteredFrom(start int64) sequence.Map {
	m := scattered()
	m.Start = start
	return m
}

// With the same map, a scattered name keeps its key and goes on. With another map, it is refused.
func TestScatteredNameGoesOnWithItsKey(t *testing.T) {
	s := newStage(t)
	a := s.node()
	first := s.create("ticket", scattered(), settings(1000))
	issued := map[int64]bool{}
	ask := func() {
		t.Helper()
		s.run(5 * time.Second)
		c := a.ask("ticket", 100, false).finish()
		if c.err != nil {
			t.Fatal(c.err)
		}
		for _, r := range c.runs {
			if issued[int64(r.First)] {
				t.Fatalf("%d comes twice", r.First)
			}
			issued[int64(r.First)] = true
		}
	}
	ask()
	for range 2 {
		s.remove("ticket")
		again := s.create("ticket", scattered(), settings(1000))
		if again.KeyCheck != first.KeyCheck || !s.keyIsThere(again) || s.keyIsThere(first) || again.ID == first.ID {
			t.Error("the name has not kept its key")
		}
		ask()
	}
	s.remove("ticket")
	wider := scattered()
	wider.Scatter++
	for _, m := range []sequence.Map{wider, scatteredFrom(2)} {
		_, err := s.operator().Create(t.Context(), operator.Definition{Name: "ticket", Map: m, Settings: settings(1000),
			StartGiven: true})
		if err == nil || !strings.Contains(err.Error(), "start must be above 1099511627776") {
			t.Error(err)
		}
	}
	s.erase(record.MapKeyPath(s.view("ticket").Record.ID))
	if _, err := s.operator().Create(t.Context(), operator.Definition{Name: "ticket", Map: scattered(),
		Settings: settings(1000)}); err == nil || !strings.Contains(err.Error(), "the key with which") {
		t.Errorf("the key is lost: %v", err)
	}
}

// The time for which nodes that are cut off issue passes in sequence time. An operator's clock that is ahead ends it no
// sooner, and a node that puts the sequence time back after a loss may put it far ahead.
func TestPurgeAndStrictLivesWaitInSequenceTime(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.setTime(5_000)
	s.create("order", plain(), settings(1000)) // a hold of 10 minutes
	a.ask("order", 1, false).first()
	s.set("order", operator.Change{Settings: func(set *record.Settings) { set.HoldMs = 1000 }})
	s.remove("order")
	ahead := s.operator()
	ahead.Clock = simClock{new(s.now + 24*3600_000), func() {}}
	wait := int64(600_000 + 2*15_000)
	early := func(when string, ok bool) {
		t.Helper()
		r, st := s.view("order").Record, s.view("order").State
		if left := r.IssuableFor(*st); (left == 0) != ok {
			t.Errorf("%s: %s left", when, left)
		}
		if ok {
			return
		}
		if err := ahead.Purge(t.Context(), "order"); !errors.Is(err, operator.ErrTooEarly) {
			t.Errorf("%s: purge: %v", when, err)
		}
		d := operator.Definition{Name: "order", Mode: record.Strict, Map: plain(), Settings: settings(1000), StartGiven: true}
		if _, err := ahead.Create(t.Context(), d); !errors.Is(err, operator.ErrTooEarly) {
			t.Errorf("%s: a strict life: %v", when, err)
		}
	}
	early("at once", false)
	s.setTime(5_000 + wait - 1)
	early("1 ms too early", false)
	s.jumpTime(3600_000)
	early("after the sequence time has jumped", false)
	s.setTime(5_000 + wait - 1 + 3600_000 + wait - 1)
	early("1 ms too early after that", false)
	s.setTime(5_000 + wait - 1 + 3600_000 + wait)
	early("then", true)
	st := *s.view("order").State
	st.PutAt = new(st.Time)
	s.write(record.StatePath, st.Marshal())
	early("a node has perhaps just put the tombstone back", false)
	s.setTime(st.Time + wait)
	early("then again", true)
	if err := ahead.Purge(t.Context(), "order"); err != nil {
		t.Error(err)
	}
}

// After a loss, the tombstone does not know what was issued, whatever the modes. The start that the operator gives is
// also above the values of all later lives.
func TestAfterALossANameIsCreatedOnlyWithAStart(t *testing.T) {
	for _, modes := range [][2]record.Mode{{record.Strict, record.Strict}, {record.Strict, record.Segment}, {record.Segment, record.Strict}, {record.Segment, record.Segment}} {
		s := newStage(t)
		a := s.node()
		op := s.operator()
		d := operator.Definition{Name: "x", Mode: modes[0], Map: sequence.Map{Start: 1, Increment: 1, Max: 1e9},
			Settings: settings(100)}
		s.creates(d)
		s.run(4 * time.Second)
		a.ask("x", 40, false).first()
		s.remove("x")
		a.noteLoss()
		s.run(11 * time.Minute) // longer than the hold
		d.Mode = modes[1]
		if _, err := op.Create(t.Context(), d); !errors.Is(err, operator.ErrStartNeeded) {
			t.Errorf("%v: %v", modes, err)
		}
		d.StartGiven = true
		if _, err := op.Create(t.Context(), d); err == nil || !strings.Contains(err.Error(), "start must be above") {
			t.Errorf("%v: a start of 1, although 40 was issued: %v", modes, err)
		}
		d.Start = 1000
		r, err := op.Create(t.Context(), d)
		if err != nil || r.Incarnation != 1 || r.Value(r.Next) != 1000 {
			t.Errorf("%v: %v, %+v: it must not wait for another word of the operator", modes, err, r)
		}
		s.remove("x")
		d.Start, d.StartGiven, d.Mode = 1, false, record.Segment
		if r, err := op.Create(t.Context(), d); err != nil || r.Value(r.Next) != 1000 {
			t.Errorf("%v: %v, the next life begins at %d", modes, err, r.Value(r.Next))
		}
	}
}

// A sequence that a template makes begins above what the template's start was vouched to be above, in all its lives.
func TestTemplateHandsOnWhatEarlierLivesIssued(t *testing.T) {
	s := newStage(t)
	a := s.node()
	a.noteLoss()
	s.run(2 * stageConfirm)
	s.createTemplate("order:*", 5000, 5)
	if v := a.ask("order:1", 1, false).first(); v != 5000 {
		t.Fatal(v)
	}
	s.run(4 * time.Second)
	s.remove("order:1")
	m := scatteredFrom(100)
	if _, err := s.operator().Create(t.Context(), operator.Definition{Name: "order:1", Map: m, Settings: settings(1000),
		StartGiven: true}); err == nil {
		t.Error("scattered values below 5000 may have been issued before the loss")
	}
	if r := s.view("order:1").Record; r.Above != 4999 {
		t.Error(r.Above)
	}
}
