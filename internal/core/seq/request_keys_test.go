package seq

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// strictStage returns a stage with two nodes and a strict sequence.
func strictStage(t *testing.T) (*stage, *actor, *actor) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.creates(operator.Definition{Name: "invoice", Mode: record.Strict, Map: plain(), Settings: settings(1000)})
	return s, a, b
}

func (a *actor) askKey(key string) *call { return a.askWith(sequence.Wait{Key: key}, "invoice") }

// askWith asks for one value.
func (a *actor) askWith(w sequence.Wait, name string) *call {
	c := &call{a: a, name: name, n: 1, whole: true, woken: true, w: w}
	return c.again()
}

func TestKeysAreForStrictSequences(t *testing.T) {
	s, a, _ := strictStage(t)
	s.create("order", plain(), settings(1000))
	if r := a.askWith(sequence.Wait{Key: "k"}, "order").reason(); r != record.WrongMode {
		t.Error(r)
	}
}

// Keys belong to one life of a sequence.
func TestDeletionForgetsKeys(t *testing.T) {
	s, a, _ := strictStage(t)
	before := s.view("invoice").Record.ID
	first := a.askKey("k").first()
	if _, _, err := s.Mem.Peek(record.RequestKeysPath(before)); err != nil {
		t.Fatal(err)
	}
	s.remove("invoice")
	if _, _, err := s.Mem.Peek(record.RequestKeysPath(before)); err == nil {
		t.Error("the keys are still there")
	}
	s.creates(operator.Definition{Name: "invoice", Mode: record.Strict, Map: plain(), Settings: settings(1000)})
	s.run(10 * time.Second)
	if v := a.askKey("k").first(); v <= first {
		t.Errorf("%d, after %d in the earlier life", v, first)
	}
}
