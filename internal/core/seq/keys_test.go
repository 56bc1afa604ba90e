package seq

import (
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/sequence"
)

func keyedRequest(key string) request {
	return request{w: &sequence.Wait{Key: key}, n: 1, wake: func() {}}
}

func TestKeysAreReadAsTheyWereWritten(t *testing.T) {
	k := (&keyring{}).with([]request{keyedRequest("a"), keyedRequest(""), keyedRequest("b")}, 7)
	got, err := parseKeys(k.marshal())
	if err != nil || !slices.Equal(got, k.entries) || len(k.marshal()) != 2*20 {
		t.Fatalf("%v, %v: %v", got, k.entries, err)
	}
	for key, want := range map[string]int64{"a": 7, "b": 9} {
		if p, ok := k.find(hashKey(key)); !ok || p != want {
			t.Errorf("%s: %d, %v", key, p, ok)
		}
	}
	if _, err := parseKeys(make([]byte, 24)); err == nil {
		t.Error("24 bytes are no keys")
	}
	if (&keyring{}).with([]request{keyedRequest("")}, 1) != nil {
		t.Error("keys are written although no request has one")
	}
}

func TestVersionOfKeysAfterAWrite(t *testing.T) {
	for _, c := range []struct {
		k    keyring
		want int32
		ops  int
	}{
		{keyring{}, 0, 1}, {keyring{exists: true, version: 7}, 8, 1},
		{keyring{exists: true, version: -2}, 0, 2}, // a write at version -1 would be unconditional
	} {
		if got := c.k.written(); !got.exists || got.version != c.want || len(c.k.ops("id")) != c.ops {
			t.Errorf("%+v: %+v", c.k, got)
		}
	}
}

// strictStage returns a stage with two nodes and a strict sequence.
func strictStage(t *testing.T) (*stage, *actor, *actor) {
	s := newStage(t)
	a, b := s.node(), s.node()
	d := Definition{Name: "invoice", Mode: Strict, Map: plain(), Settings: settings(1000), StartGiven: true}
	if _, err := s.operator().Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return s, a, b
}

func (a *actor) askKey(key string) *call {
	c := &call{a: a, name: "invoice", n: 1, woken: true, w: sequence.Wait{Key: key}}
	return c.again()
}

func TestKeysAreForStrictSequences(t *testing.T) {
	s, a, _ := strictStage(t)
	s.create("order", plain(), settings(1000))
	c := &call{a: a, name: "order", n: 1, woken: true, w: sequence.Wait{Key: "k"}}
	if r := c.again().reason(); r != WrongMode {
		t.Error(r)
	}
}

// Keys belong to one life of a sequence.
func TestDeletionForgetsKeys(t *testing.T) {
	s, a, _ := strictStage(t)
	before := s.view("invoice").record.ID
	first := a.askKey("k").first()
	if _, _, err := s.mem.Peek(keysPath(before)); err != nil {
		t.Fatal(err)
	}
	s.remove("invoice")
	if _, _, err := s.mem.Peek(keysPath(before)); err == nil {
		t.Error("the keys are still there")
	}
	d := Definition{Name: "invoice", Mode: Strict, Map: plain(), Settings: settings(1000)}
	if _, err := s.operator().Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	s.run(10 * time.Second)
	if v := a.askKey("k").first(); v <= first {
		t.Errorf("%d, after %d in the earlier life", v, first)
	}
}
