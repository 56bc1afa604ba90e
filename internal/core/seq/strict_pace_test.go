package seq

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// A node that has written a strict sequence beside another one writes it again only after the pause, however many
// requests wait.
func TestStrictSequenceIsLeftToOthersAfterAWrite(t *testing.T) {
	s, a, b := strictStage(t)
	a.is.issuer.cfg.Retry = func(most time.Duration) time.Duration { return most }
	b.ask("invoice", 1, true).first()
	a.ask("invoice", 1, true).first() // learns that b writes
	s.now++
	b.ask("invoice", 1, true).first()
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Write() {
			s.now += 5 // a write takes 5 ms
		}
		return memzk.NoFault
	}
	writes := 0
	a.store.SetDone(func(c memzk.Call, result, _ error) {
		if c.Write() && result == nil {
			writes++
		}
	})
	round := func() {
		if err := a.round(); err != nil {
			t.Fatal(err)
		}
	}
	s.now += 100 // the pause after the write above ends
	a.ask("invoice", 1, true)
	round()
	if writes != 1 {
		t.Fatalf("%d writes", writes)
	}
	written := s.now
	for range 20 {
		a.ask("invoice", 1, true)
		round()
		if writes > 1 {
			break
		}
		s.now++
	}
	if pause := s.now - 5 - written; writes != 2 || pause != 11 { // 2 times 5 ms and 1 µs
		t.Errorf("%d writes, the second after %d ms", writes, pause)
	}
}

// The write of an operator is not one of another node, so the only node that writes a strict sequence makes no pauses:
// it writes again as soon as ZooKeeper has acknowledged a write, however quick that was.
func TestOperatorIsNoOtherWriter(t *testing.T) {
	s, a, _ := strictStage(t)
	a.is.issuer.cfg.Retry = func(most time.Duration) time.Duration { return most }
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Write() {
			s.now++ // a write takes 1 ms
		}
		return memzk.NoFault
	}
	for _, act := range []struct {
		name string
		do   func()
	}{
		{"created", func() {}},
		{"changed", func() {
			s.set("invoice", operator.Change{Settings: func(set *record.Settings) { set.SupplyMs++ }})
			s.run(4 * time.Second) // the nodes follow
		}},
		{"raised", func() { s.setNext("invoice", 1000) }}, // nobody has followed: the next write fails
	} {
		act.do()
		a.ask("invoice", 1, true).first()
		s.now++
		began := s.now
		for range 3 {
			a.ask("invoice", 1, true)
			if err := a.round(); err != nil {
				t.Fatal(err)
			}
		}
		if took := s.now - began; took != 3 {
			t.Errorf("%s by an operator: three writes took %d ms, want 3", act.name, took)
		}
	}
}
