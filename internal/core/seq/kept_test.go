package seq

import (
	"context"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
)

// All nodes have forgotten a next value that an operator had raised and ZooKeeper has lost, or a disk had no room for
// it. The journal of one has a block above it, so that another node gives none of those values again.
func TestJournalRaisesTheRecord(t *testing.T) {
	for name, row := range map[string]struct {
		noticed  bool // somebody has noticed the loss
		forgets  bool // the node has lost all of its witness file, not only what it had of this sequence
		reported int
		later    bool // another node, which has forgotten all, too, reads the incarnation earlier
		older    bool // the witness file is from before
	}{
		"the witness file is older":                        {older: true, reported: 1},
		"the loss was noticed, by an older witness file":   {noticed: true, older: true},
		"another node waits for a shorter time":            {noticed: true, forgets: true, later: true},
		"the loss was noticed":                             {noticed: true, forgets: true},
		"the loss was noticed, and the node knows /seq":    {noticed: true},
		"only the journal shows the loss":                  {reported: 1},
		"only the journal shows the loss, of a fresh node": {forgets: true, reported: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := newJournaled(t)
			before := s.Mem.Snapshot()
			old, _ := a.is.witness()
			s.setNext("order", 500_000)
			s.run(5 * time.Second)
			issued := a.ask("order", 10, false).first()
			s.run(5 * time.Second)
			s.Mem.Restore(before)
			dir, count, w := a.dir, a.is.issuer.JournalCount(), old
			if row.noticed {
				s.raise(0)
			}
			if !row.forgets && !row.older {
				w, _ = a.is.witness()
				w.State = *s.view("order").State
				delete(w.Records, "order")
			}
			a.restart()
			a.openJournal(dir)
			a.cluster.Resumed, a.cluster.Journal = true, count
			if !row.forgets {
				a.is.recallWitness(w)
			}
			reports := len(a.reports)
			a.gone()
			b := s.newNode()
			if row.later {
				s.run(5 * time.Second)
			}
			s.nodes = append(s.nodes, a)
			s.run(stageConfirm - 6*time.Second)
			for k := 0; k < 100 && b.ask("order", 1, false).finish().err != nil; k++ {
				s.now += 200 // without rounds of the node
			}
			if n := len(a.reports) - reports; n < row.reported {
				t.Errorf("%d reports", n)
			}
			if got := b.ask("order", 1, false).first(); got < issued+10 {
				t.Errorf("a node issues %d, after %d to %d", got, issued, issued+9)
			}
			if got := a.ask("order", 1, false).first(); got < issued+10 {
				t.Errorf("the node issues %d, after %d to %d", got, issued, issued+9)
			}
		})
	}
}

// forgetful restarts a node of a new journaled stage with nothing but its journal, after a loss of a raised next value
// that was noticed. It has blocks of the sequences aa and order in it.
func forgetful(t *testing.T) (*stage, *actor, uint64) {
	s, a := newJournaled(t)
	s.create("aa", plain(), settings(1000))
	a.ask("aa", 1, false).first()
	s.run(5 * time.Second)
	before := s.Mem.Snapshot()
	s.setNext("order", 500_000)
	s.setNext("aa", 500_000)
	s.run(5 * time.Second)
	a.ask("order", 10, false).first()
	a.ask("aa", 10, false).first()
	s.run(5 * time.Second)
	s.Mem.Restore(before)
	s.raise(0)
	dir, count := a.dir, a.is.issuer.JournalCount()
	a.restart()
	a.openJournal(dir)
	return s, a, count
}

// Peers wait for a node that has yet to compare its journal (S12), although it knows no /seq. It says so before its
// first round, and does not wait for anybody.
func TestJournalIsSaidToBeCompared(t *testing.T) {
	s, a, count := forgetful(t)
	compares := func(want bool) {
		t.Helper()
		if f := a.is.issuer.Followed(); f.Compares != want || f.Compared != nil {
			t.Errorf("says %s", told(f))
		}
	}
	compares(true)
	a.cluster.Resumed, a.cluster.Journal = true, count
	a.hold = func() Slot { return Slot{Wait: time.Second} } // it waits for its peers
	s.run(time.Second)
	compares(true)
	s.run(3 * time.Second)
	compares(false)
	if next := s.view("order").Record.Next; next < 500_010 {
		t.Errorf("the next position is %d", next)
	}
	_, a, _ = forgetful(t)
	compares(true)
	a.cluster.Resumed = false // nothing of it counts
	_ = a.round()
	compares(false)
	s, a, count = forgetful(t)
	a.cluster.Resumed, a.cluster.Journal = true, count
	s.Mem.Wipe() // there is nothing to compare
	createCluster(s.Mem.Session(), 0)
	s.raise(0)
	_ = a.round()
	compares(false)
}

func TestJournalRaisesBesideADamagedRecord(t *testing.T) {
	s, a, count := forgetful(t)
	s.write(record.Path("aa"), []byte("rubbish"))
	a.cluster.Resumed, a.cluster.Journal = true, count
	s.run(4 * time.Second)
	if next := s.view("order").Record.Next; next < 500_010 || a.is.issuer.Followed().Compares {
		t.Errorf("the next position is %d, and the node says %s", next, told(a.is.issuer.Followed()))
	}
}

// A node gives a whole block back, and keeps values of the block before. Then another node gives the rest of its block
// back, which lies between the two. So the next position falls below the block in the journal, and nothing was lost.
func TestJournalClaimsNoBlockThatWasGivenBack(t *testing.T) {
	s, a := newJournaled(t)
	b := s.node()
	stop := func(n *actor) {
		if err := n.is.giveBack(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	next := func() int64 { return s.view("order").Record.Next }
	b.ask("order", 1, false).first() // a block between those of a
	between := next()
	for next() == between {
		a.ask("order", 1, false).first()
	}
	s.run(5 * time.Second) // it is quiet
	stop(a)
	if next() != between {
		t.Fatalf("the next position is %d, not %d", next(), between)
	}
	a.again(true)
	a.ask("order", 1, false).first()
	stop(b)
	if next() >= between {
		t.Fatalf("the next position is %d, not below %d", next(), between)
	}
	a.again(true) // after kill -9
	a.ask("order", 1, false).first()
	if len(a.reports) > 0 {
		t.Errorf("a loss was reported: %v", a.reports)
	}
}
