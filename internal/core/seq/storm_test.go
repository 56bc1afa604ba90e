package seq

import (
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

// Clients ask for more than the ceiling allows all the time. They get what it allows, with few writes.
func TestFewWritesAtTheCeiling(t *testing.T) {
	for _, ceiling := range []int64{10, 1000} {
		s := newStage(t)
		a := s.node()
		s.create("order", plain(), settings(ceiling))
		if c := a.ask("order", int(10*ceiling), true).finish(); c.err != nil {
			t.Fatal(c.err)
		}
		writes, served := 0, 0
		a.calls = func(c store.Call) store.Fault {
			if c.Op == "multi" {
				writes++
			}
			return store.NoFault
		}
		c := &call{done: true, err: errForgotten}
		for end := s.now + 3000; s.now < end; s.now += 2 { // ZooKeeper takes 2 ms
			for range 50 {
				if c.again(); !c.done {
					break
				}
				if c.err == nil {
					served += c.n
				}
				c = a.ask("order", 1+int(ceiling/1000), false)
			}
			if !c.done {
				_ = a.round()
			}
		}
		if writes > 180 || served < int(2*ceiling) {
			t.Errorf("ceiling %d: %d writes and %d values in 3 s", ceiling, writes, served)
		}
	}
}
