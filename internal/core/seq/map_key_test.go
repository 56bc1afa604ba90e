package seq

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

func salted() sequence.Map {
	return sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript, Salt: 8}
}

func scattered() sequence.Map {
	return sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript, Scatter: 40}
}

// valuesOf returns the map of a sequence, with the key that is in ZooKeeper.
func (s *stage) valuesOf(r record.Record) sequence.Values {
	s.t.Helper()
	k, err := s.operator().MapKey(context.Background(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return sequence.NewValues(r.Map, k)
}

// positions returns the positions of the values that a request got. It fails the test if one is no value of v.
func (c *call) positions(v sequence.Values) (all []int64) {
	c.a.t.Helper()
	c.first()
	for _, r := range c.runs {
		for k := range r.Len {
			p, ok := v.Position(int64(r.At(k)))
			if !ok {
				c.a.t.Fatalf("%d is not a value of %s", r.At(k), c.name)
			}
			all = append(all, p)
		}
	}
	return all
}

func (s *stage) keyIsThere(r record.Record) bool {
	_, _, err := s.Mem.Peek(record.MapKeyPath(r.ID))
	return err == nil
}

func TestKeyedSequencesOnTwoNodes(t *testing.T) {
	for _, m := range []sequence.Map{salted(), scattered()} {
		s := newStage(t)
		a, b := s.node(), s.node()
		r := s.create("ticket", m, settings(1000))
		v, next := s.valuesOf(r), map[*actor]int64{a: 0, b: 0}
		seen := map[int64]bool{}
		for range 20 {
			for node := range next {
				for _, p := range node.ask("ticket", 50, false).positions(v) {
					if seen[p] || p < next[node] {
						t.Fatalf("%+v: position %d after %d", m, p, next[node])
					}
					seen[p], next[node] = true, p+1
				}
			}
		}
		for _, n := range []int{1, 10} {
			if c := a.ask("ticket", n, true); c.reason() != record.WrongMode || !strings.Contains(c.err.Error(), "NEXT") {
				t.Error(c.err)
			}
		}
	}
}

// A record must not be without its key, not even for a moment: the only node that knows both may end.
func TestKeyIsPutBackBeforeTheRecord(t *testing.T) {
	s := newStage(t)
	a := s.node()
	r := s.create("ticket", salted(), settings(1000))
	a.ask("ticket", 10, false).first()
	s.run(5 * time.Second)
	s.erase(record.Path("ticket"), record.BucketPath("ticket"), record.RecordsDir, record.MapKeyPath(r.ID), path.Dir(record.MapKeyPath(r.ID)), record.StatePath)
	a.inCreation(func() {
		a.inCreation(func() {
			if s.exists("ticket") || !s.keyIsThere(r) {
				t.Errorf("record: %v, key: %v", s.exists("ticket"), s.keyIsThere(r))
			}
		})
	})
	s.run(3 * stageConfirm)
	if !s.exists("ticket") || !s.keyIsThere(r) {
		t.Error("the record or the key is not put back")
	}
}

// Nobody knows the key any more: the sequence is frozen, for good. It never gets another key.
func TestNobodyKnowsTheKey(t *testing.T) {
	for name, harm := range map[string]func(s *stage, path string){
		"missing": func(s *stage, path string) { s.erase(path) },
		"another": func(s *stage, path string) { s.write(path, []byte(sequence.NewKey().Hex())) },
		"damaged": func(s *stage, path string) { s.write(path, []byte("x")) },
	} {
		s := newStage(t)
		a := s.node()
		r := s.create("ticket", salted(), settings(1000))
		a.ask("ticket", 1, false).first()
		a.gone()
		harm(s, record.MapKeyPath(r.ID))
		b := s.node()
		before := s.view("ticket").Record.Next
		for range 5 {
			if reason := b.ask("ticket", 1, false).reason(); reason != record.Frozen {
				t.Fatal(name, reason)
			}
			s.run(time.Minute)
		}
		if next := s.view("ticket").Record.Next; next != before {
			t.Errorf("%s: the next position is %d, not %d", name, next, before)
		}
		if _, err := s.operator().MapKey(context.Background(), r); !errors.Is(err, operator.ErrNoMapKey) {
			t.Error(name, err)
		}
		s.remove("ticket")
		again := s.create("ticket", salted(), settings(1000))
		s.run(5 * time.Second)
		if p := b.ask("ticket", 1, false).positions(s.valuesOf(again))[0]; p < before {
			t.Errorf("%s: position %d, not %d or more", name, p, before)
		}
	}
}

// A node that knows the key overwrites a damaged one.
func TestDamagedKeyIsPutBack(t *testing.T) {
	s := newStage(t)
	a := s.node()
	r := s.create("ticket", salted(), settings(1000))
	v := s.valuesOf(r)
	a.ask("ticket", 1, false).first()
	s.write(record.MapKeyPath(r.ID), []byte("x"))
	s.run(2 * minRefreshAge)
	if s.valuesOf(r) != v {
		t.Error("there is another key")
	}
}

func TestEachLifeHasItsOwnKey(t *testing.T) {
	s := newStage(t)
	a := s.node()
	r := s.create("ticket", salted(), settings(1000))
	a.ask("ticket", 10, false).first()
	s.remove("ticket")
	if !s.keyIsThere(r) {
		t.Error("a tombstone has no key")
	}
	last := s.view("ticket").Record.Highest(s.view("ticket").Record.Next - 1)
	again := s.create("ticket", salted(), settings(1000))
	if s.keyIsThere(r) || !s.keyIsThere(again) || again.KeyCheck == r.KeyCheck {
		t.Error(s.keyIsThere(r), s.keyIsThere(again), again.KeyCheck)
	}
	s.run(5 * time.Second)
	c := a.ask("ticket", 10, false)
	if c.positions(s.valuesOf(again)); c.first() <= last {
		t.Errorf("%d is not above %d", c.first(), last)
	}
	s.remove("ticket")
	s.run(time.Hour)
	if err := s.operator().Purge(context.Background(), "ticket"); err != nil || s.keyIsThere(again) {
		t.Error(err, s.keyIsThere(again))
	}
}

func TestSetOfAScatteredSequence(t *testing.T) {
	s := newStage(t)
	a := s.node()
	m := scattered()
	m.Max = 1 << 40
	r := s.create("ticket", m, settings(1000))
	a.ask("ticket", 10, false).first()
	for text, c := range map[string]operator.Change{
		"max of a scattered":          {Max: new(int64(1<<40 + 1))},
		"not for scattered":           {Next: new(int64(1000))},
		"must be 32 to 1099511627775": {NextPosition: new(int64(31))},
		"not 1099511627776":           {NextPosition: new(int64(1 << 40))},
	} {
		if _, err := s.operator().Set(context.Background(), "ticket", c); err == nil ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	s.set("ticket", operator.Change{NextPosition: new(int64(5000))})
	s.run(5 * time.Second)
	if p := a.ask("ticket", 1, false).positions(s.valuesOf(r))[0]; p != 5000 {
		t.Errorf("position %d, not 5000", p)
	}
}

func TestTemplateOfKeyedSequences(t *testing.T) {
	s := newStage(t)
	a := s.node()
	m := scattered()
	s.creates(operator.Definition{Name: "t:*", Map: m, Settings: settings(1000), MaxNames: 9})
	checks := map[string]bool{"": true}
	for _, name := range []string{"t:1", "t:2"} {
		c := a.ask(name, 5, false)
		c.first()
		r := s.view(name).Record
		if c.positions(s.valuesOf(*r)); checks[r.KeyCheck] {
			t.Errorf("%s has no key of its own", name)
		}
		checks[r.KeyCheck] = true
	}
	s.run(5 * time.Second)
	a.noteLoss()
	s.run(2 * stageConfirm)
	c := a.ask("t:3", 1, false)
	if c.reason() != record.Frozen || !strings.Contains(c.err.Error(), "a start above 1099511627776") {
		t.Fatal(c.err)
	}
	if _, err := s.operator().Set(context.Background(), "t:*",
		operator.Change{NextPosition: new(int64(5)), VouchedIn: s.incarnation()}); err == nil ||
		!strings.Contains(err.Error(), "template of scattered") {
		t.Error(err)
	}
	s.remove("t:*")
	m.Start = 1<<40 + 1
	s.creates(operator.Definition{Name: "t:*", Map: m, Settings: settings(1000), MaxNames: 9, StartGiven: true})
	s.run(5 * time.Second)
	if v := a.ask("t:3", 1, false).first(); v < m.Start {
		t.Error(v)
	}
}

func TestNoRecordAndNoWitnessHasAKey(t *testing.T) {
	s := newStage(t)
	a := s.node()
	r := s.create("ticket", scattered(), settings(1000))
	a.ask("ticket", 1, false).first()
	k, err := s.operator().MapKey(context.Background(), r)
	w, ok := a.is.witness()
	text, _ := json.Marshal(w)
	if err != nil || !ok || strings.Contains(string(r.Marshal()), k.Hex()) || strings.Contains(string(text), k.Hex()) {
		t.Error(err, ok)
	}
}
