package seq

import (
	"context"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// newShort returns a stage with nodes that have journals, and the sequence tick with the values from 1 to most.
func newShort(t *testing.T, nodes int, most int64) *stage {
	s := newStage(t)
	for range nodes {
		s.newNode().openJournal(&memDir{})
	}
	s.run(stageConfirm + time.Second)
	m, set := plain(), settings(1_000_000)
	m.Max, set.SupplyMs = most, (15 * time.Minute).Milliseconds()
	s.create("tick", m, set)
	return s
}

// issueTicks makes a node issue ten values of tick a second.
func (a *actor) issueTicks(values int) {
	a.t.Helper()
	for k := range values {
		if a.ask("tick", 1, false).first(); k%10 == 9 {
			a.run(time.Second)
		}
	}
}

// One node issues for a while. It leaves the others most of a short sequence, also when its max was raised.
func TestNodeLeavesOthersMostOfAShortSequence(t *testing.T) {
	for name, row := range map[string]struct {
		most   int64
		before int // values issued before the max was raised to 2000
	}{"2000 from the start": {2000, 0}, "raised": {100, 80}} {
		s := newShort(t, 3, row.most)
		a := s.nodes[0]
		a.issueTicks(row.before)
		s.set("tick", operator.Change{Max: new(int64(2000))})
		a.issueTicks(100)
		issued := int64(row.before) + 100
		if next := s.view("tick").Record.Next; next > issued+2000/8 {
			t.Errorf("%s: %d values are taken, and %d issued", name, next, issued)
		}
		// A request for more than a share gets its values, if they are left.
		for k, other := range s.nodes[1:] {
			other.ask("tick", 1, false).first()
			other.ask("tick", 500, k == 0).first()
		}
	}
}

// Blocks are small at the end of a sequence. A node takes few all the same, at any rate.
func TestFewWritesUntilASequenceIsExhausted(t *testing.T) {
	for _, row := range []struct{ most, perSecond, writes int64 }{
		{2000, 10, 110}, {2000, 10_000, 60}, {100_000, 10_000, 130}, // of 16 ln(most/32) + 32 and a refresh a minute
	} {
		s := newShort(t, 1, row.most)
		a := s.nodes[0]
		step := max(2, 1000/row.perSecond) // ZooKeeper takes 2 ms
		began, issued := s.now, int64(0)
		var waiting []*call
		for limit := began + 2000*row.most/row.perSecond + 1000; issued < row.most && s.now < limit; s.now += step {
			for range row.perSecond * step / 1000 {
				waiting = append(waiting, a.ask("tick", 1, false))
			}
			_ = a.round()
			left := waiting[:0]
			for _, c := range waiting {
				if c.again(); !c.done {
					left = append(left, c)
				} else if c.err == nil {
					issued++
				}
			}
			waiting = left
		}
		writes := s.view("tick").Record.WriteCount
		if issued < row.most || writes > row.writes {
			t.Errorf("%d/s: %d of %d values in %d ms, with %d writes", row.perSecond, issued, row.most, s.now-began, writes)
		}
	}
}

// A node has found that all values are taken. Another one stops, and gives some back. The first node notices, although
// nobody asks it for a value.
func TestExhaustedSequenceIsReadAgain(t *testing.T) {
	s := newStage(t)
	holder, other := s.node(), s.node() // without journals, so that a stop gives all back
	m := plain()
	m.Max = 100
	s.create("tick", m, settings(1000))
	taken := func() int64 { return s.view("tick").Record.Next }
	for taken() < 100 {
		holder.ask("tick", 1, false).first()
		_ = holder.round()
	}
	if r := other.ask("tick", 1, false).reason(); r != record.Exhausted {
		t.Fatal(r)
	}
	s.run(5 * time.Second) // all nodes have followed the creation
	if err := holder.is.giveBack(context.Background()); err != nil || taken() == 100 {
		t.Fatal(err, taken())
	}
	holder.gone()
	s.run(65 * time.Second)
	if u, ok := other.is.issuer.Use("tick"); !ok || u.Record.Next != taken() {
		t.Errorf("%v, %+v", ok, u)
	}
}
