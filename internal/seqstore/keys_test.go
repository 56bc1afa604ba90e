package seqstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/sequence"
)

func keyedRequest(key string) request {
	return request{&sequence.Wait{Key: key}, 1, false, func() {}}
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

func TestKeysEndByNumber(t *testing.T) {
	k := &keyring{}
	for i := range maxKeys {
		k = k.with([]request{keyedRequest(fmt.Sprint("k", i))}, int64(i))
	}
	if p, ok := k.find(hashKey("k0")); !ok || p != 0 || len(k.entries) != maxKeys {
		t.Errorf("%d keys, and the oldest of them has %d, %v", len(k.entries), p, ok)
	}
	k = k.with([]request{keyedRequest("one more")}, maxKeys)
	if _, ok := k.find(hashKey("k0")); ok || len(k.entries) != maxKeys {
		t.Errorf("%d keys, and the oldest one is still among them: %v", len(k.entries), ok)
	}
	if p, ok := k.find(hashKey("k1")); !ok || p != 1 {
		t.Errorf("%d, %v for the oldest key that is kept", p, ok)
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
		if got := c.k.written(); !got.exists || got.version != c.want || len(c.k.write("id")) != c.ops {
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

func TestRetryWithAKeyGetsTheSameValueFromAnyNode(t *testing.T) {
	s, a, b := strictStage(t)
	first := a.askKey("k").first()
	other := b.askKey("l").first()
	for range 3 {
		if v := b.askKey("k").first(); v != first {
			t.Errorf("%d, not %d", v, first)
		}
		if v := a.askKey("l").first(); v != other {
			t.Errorf("%d, not %d", v, other)
		}
	}
	if next := s.view("invoice").record.Next; next != 2 || first == other {
		t.Errorf("%d positions are taken for %d and %d", next, first, other)
	}
	if v := a.ask("invoice", 1, false).first(); v <= max(first, other) {
		t.Errorf("%d after %d and %d", v, first, other)
	}
	b.clock = (24 * time.Hour).Milliseconds()
	if v := b.askKey("k").first(); v != first {
		t.Errorf("%d, not %d, from a node whose clock is a day ahead", v, first)
	}
}

func TestRequestsWithOneKeyInOneWriteGetOneValue(t *testing.T) {
	s, a, _ := strictStage(t)
	a.ask("invoice", 1, false).first()
	calls := []*call{a.askKey("k"), a.askKey("k"), a.askKey("l"), a.ask("invoice", 2, false)}
	k1, k2, l := calls[0].first(), calls[1].first(), calls[2].first()
	if k1 != k2 || k1 == l {
		t.Errorf("%d, %d and %d", k1, k2, l)
	}
	calls[3].first()
	if next := s.view("invoice").record.Next; next != 5 {
		t.Errorf("%d positions are taken for 1 + 1 + 1 + 2 values", next)
	}
}

// The acknowledgement of the write is lost. Then a retry gets the value on any node, and no value is missing.
func TestRetryWithAKeyAfterAnUnknownOutcome(t *testing.T) {
	for name, fault := range map[string]zkstore.Fault{"applied": zkstore.FailAfter, "lost": zkstore.FailBefore, "applied late": zkstore.FailLate} {
		s, a, b := strictStage(t)
		a.ask("invoice", 1, false).first()
		a.calls = func(c zkstore.Call) zkstore.Fault {
			if c.Op == "multi" {
				return fault
			}
			return zkstore.NoFault
		}
		if r := a.askKey("k").reason(); r != Unknown {
			t.Errorf("%s: %s", name, r)
		}
		a.calls = nil
		s.run(2 * time.Second)
		if fault == zkstore.FailLate {
			b.calls = func(c zkstore.Call) zkstore.Fault { // the write arrives just before that of the retry
				if c.Op == "multi" {
					s.mem.Deliver()
				}
				return zkstore.NoFault
			}
		}
		v := b.askKey("k").first()
		b.calls = nil
		if again := a.askKey("k").first(); again != v {
			t.Errorf("%s: %d and %d", name, v, again)
		}
		if next := s.view("invoice").record.Next; next != 2 {
			t.Errorf("%s: %d positions are taken for 2 values", name, next)
		}
	}
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
