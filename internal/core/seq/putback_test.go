package seq

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
)

// newLife is the ID of the life of a name that rivalOfAnotherLife writes.
const newLife = "0123456789abcdef"

// rivalOfAnotherLife returns a node that has taken a block, and writes what an operator leaves who creates the name
// again after ZooKeeper has lost that block: another life with as many writes. Another node notices the loss first.
func rivalOfAnotherLife(t *testing.T, m sequence.Map, change func(*record.Record)) (s *stage, a *actor) {
	s = newStage(t)
	a, b := s.node(), s.node()
	s.create("order", m, settings(1000))
	a.ask("order", 10, false).first()
	r := *s.view("order").Record
	r.ID, r.Nonce = newLife, "rival"
	change(&r)
	s.write(record.Path("order"), r.Marshal())
	b.noteLoss()
	s.run(3 * stageConfirm)
	if got := s.view("order").Record; got.ID != newLife {
		t.Fatalf("the other life is not there: %+v", got)
	}
	return s, a
}

// A node that learns of another life, while it puts a record back, issues none of its old positions as values of the new
// life, whose positions other nodes have taken.
func TestAnotherLifeGetsNoPositionsOfTheOldOne(t *testing.T) {
	const taken = 5000
	s, a := rivalOfAnotherLife(t, plain(), func(r *record.Record) {
		r.Start, r.Above, r.Next = 1_000_000, 999_999, taken
	})
	if v := a.ask("order", 1, false).first(); v < 1_000_000+taken {
		t.Errorf("%d is issued, of which the position was taken before", v)
	}
	if next := s.view("order").Record.Next; next < taken {
		t.Errorf("the next position is %d", next)
	}
}

// The map key of the old life is not put back for the new one, whose key is lost.
func TestAnotherLifeDoesNotGetTheKeyOfTheOldOne(t *testing.T) {
	s, a := rivalOfAnotherLife(t, salted(), func(r *record.Record) {
		r.Above, r.KeyCheck = r.HighestIssued(), sequence.NewKey().Fingerprint()
	})
	if c := a.ask("order", 1, false); c.reason() != record.Frozen {
		t.Errorf("%v, %v", c.runs, c.err)
	}
	if s.keyIsThere(record.Record{ID: newLife}) {
		t.Error("ZooKeeper has the key of the old life under the ID of the new one")
	}
}

// raised raises the next value of order. Two nodes know that, and the first one is then cut off. copied has ZooKeeper's
// data from before.
func (s *stage) raised(next int64) (cut, other *actor, copied *memzk.Snapshot) {
	cut, other = s.node(), s.node()
	s.create("order", plain(), settings(1000))
	s.run(5 * time.Second)
	copied = s.Mem.Snapshot()
	s.setNext("order", next)
	s.run(5 * time.Second)
	cut.store.Partition()
	return cut, other, copied
}

// A node that knows a raised next value is cut off while ZooKeeper loses it. One that has issued from there has ended,
// and another one, which does not know it, has taken the first block since. Then the first one comes back, and nobody
// repeats the values of the second.
func TestLatePutBackSkips(t *testing.T) {
	s := newStage(t)
	a, gone, copied := s.raised(500_000)
	given := map[int64]bool{}
	ask := func(n *actor) {
		t.Helper()
		v := n.ask("order", 1, false).first()
		if given[v] {
			t.Fatalf("%d comes twice", v)
		}
		given[v] = true
	}
	for range 1000 {
		ask(gone)
	}
	gone.gone()
	s.lose(copied, 9)
	c := s.newNode()
	c.noteLoss()
	s.run(2 * stageConfirm)
	ask(c)
	a.store.Heal()
	s.run(3 * stageConfirm)
	for range 1000 {
		ask(c)
		ask(a)
	}
	if !given[500_000] || s.view("order").Record.Next < 501_000 {
		t.Errorf("the next position is %d", s.view("order").Record.Next)
	}
}

// As TestLatePutBackSkips, but the raise is smaller than what the first block has left out: the next position lies above
// the raised one when the node comes back that knows of it. What others have taken from there lies further above.
func TestLatePutBackSkipsOverASmallRaise(t *testing.T) {
	s := newStage(t)
	a, gone, copied := s.raised(200_000)
	var last int64
	for range 300 {
		last = gone.ask("order", 900, true).first() + 899
		s.run(time.Second)
	}
	gone.gone()
	s.lose(copied, 9)
	s.raise(0)
	c := s.newNode()
	s.run(2 * stageConfirm)
	c.ask("order", 1, false).first()
	a.store.Heal()
	s.run(3 * stageConfirm)
	c.ask("order", int(c.segmentOf("order").stock.Left()), false).first() // it had these before
	for _, n := range []*actor{a, c} {
		if v := n.ask("order", 1, false).first(); v <= last {
			t.Errorf("%d is issued, up to %d were before", v, last)
		}
	}
}
