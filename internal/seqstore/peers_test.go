package seqstore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/sequence"
)

// The tests of this file play what went wrong with generators like this one, as their users reported it.

// ledger checks that no value is issued twice, and that the values of each node ascend.
type ledger struct {
	t    *testing.T
	seen map[int64]bool
	last map[*actor]int64
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t, map[int64]bool{}, map[*actor]int64{}}
}

// add records what a request was answered.
func (l *ledger) add(c *call) {
	l.t.Helper()
	c.first()
	for _, r := range c.runs {
		for k := range r.Len {
			v := int64(r.At(k))
			if l.seen[v] {
				l.t.Errorf("%d is issued twice", v)
			}
			if v <= l.last[c.a] {
				l.t.Errorf("%d after %d on one node", v, l.last[c.a])
			}
			l.seen[v], l.last[c.a] = true, v
		}
	}
}

// Leaf #48: with a step of 10, the last of 21 requests at once got an exception, because both buffers were
// used up. Leaf #35: with a step of 50, many of 5,000 calls did. Here they wait for the next block.
func TestMoreRequestsAtOnceThanABlockHas(t *testing.T) {
	for _, n := range []int{21, 65, 5000} {
		s := newStage(t)
		a := s.node()
		s.create("order", plain(), settings(1000))
		var calls []*call
		for range n {
			calls = append(calls, a.ask("order", 1, false))
		}
		all := newLedger(t)
		for _, c := range calls {
			all.add(c)
		}
		if len(all.seen) != n {
			t.Errorf("%d values for %d requests", len(all.seen), n)
		}
	}
}

// Leaf PR#117: a request for a batch that was larger than the step looped for ever. Here a node takes a block
// that is large enough, or refuses at once what no block can hold.
func TestRangeLargerThanABlock(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000)) // a block of 32, a burst of 10,000
	if v := a.ask("order", 9000, true).first(); v != 1 {
		t.Error(v)
	}
	c := a.ask("order", 10_001, true)
	if r := c.reason(); r != TooMany {
		t.Error(r)
	}
}

// Leaf PR#204: nobody noticed that the table had been emptied, and a row that was inserted again began at 1. Here
// the nodes that use a sequence find its record missing, and put it back.
func TestRecordsAreDeletedByHand(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.create("order", plain(), settings(1000))
	all := newLedger(t)
	all.add(a.ask("order", 100, false))
	all.add(b.ask("order", 100, false))
	if err := s.operator().Store.Delete(t.Context(), recordPath("order"), zkstore.AnyVersion); err != nil {
		t.Fatal(err)
	}
	s.run(renewAfter + 3*stageConfirm)
	for range 5 {
		all.add(a.ask("order", 100, false))
		all.add(b.ask("order", 100, false))
		s.run(stageConfirm)
	}
	if e := s.incarnation(); e != 1 {
		t.Errorf("the incarnation is %d, not 1", e)
	}
}

// Leaf #64: a messenger wanted the numbers of each conversation to rise over several servers, and got blocks that
// overtake each other. Here it is the same over nodes, and docs/sequences.md says so. On one node they rise.
func TestOrderHoldsOnEachNode(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.create("order", plain(), settings(1000))
	all := newLedger(t)
	for range 100 {
		all.add(a.ask("order", 7, false))
		all.add(b.ask("order", 3, false))
		s.run(time.Second)
	}
	if len(all.seen) != 1000 {
		t.Errorf("%d values", len(all.seen))
	}
}

// tinyid #47: two threads fetched blocks 2 and 3 at once, and the blocks were used in the order 1, 3, 2. Here a
// node has one attempt at a time, and never goes back to a lower block.
func TestBlocksAreUsedInOrderAfterLostAnswers(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	set := settings(1000)
	set.SupplyMs = 1 // the smallest blocks
	s.create("order", plain(), set)
	all := newLedger(t)
	all.add(a.ask("order", 1, false))
	writes := 0
	a.calls = func(c zkstore.Call) zkstore.Fault {
		if c.Op != "multi" {
			return zkstore.NoFault
		}
		writes++
		return []zkstore.Fault{zkstore.FailLate, zkstore.NoFault, zkstore.FailAfter, zkstore.FailBefore, zkstore.NoFault}[writes%5]
	}
	for range 200 {
		c := a.ask("order", 20, false)
		_ = a.round()
		s.mem.Deliver()
		if c.finish(); c.err == nil {
			all.add(c)
		}
		all.add(b.ask("order", 20, false))
		s.run(time.Second)
	}
	if writes < 20 {
		t.Errorf("only %d writes", writes)
	}
}

// tidb #52622: a table with an increment of 66 and an offset of 9527 began at 9527 once more after a restart.
func TestStepsGoOnAfterARestart(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", sequence.Map{Start: 9527, Increment: 66, Max: sequence.MaxJavaScript}, settings(1000))
	all := newLedger(t)
	for range 5 {
		all.add(a.ask("order", 1, false))
		a.restart("")
		s.run(2 * stageConfirm)
	}
	for v := range all.seen {
		if (v-9527)%66 != 0 {
			t.Errorf("%d is none of the sequence's values", v)
		}
	}
}

// cockroach #71135: setval(500) did not reach the values that sessions had cached, and the next one was 2. Here
// each node that is connected has followed by its next heartbeat.
func TestRaisedNextReachesAllNodes(t *testing.T) {
	s := newStage(t)
	nodes := []*actor{s.node(), s.node(), s.node()}
	s.create("order", plain(), settings(1000))
	for _, a := range nodes {
		a.ask("order", 1, false).first()
	}
	s.setNext("order", 500)
	s.run(4 * time.Second)
	for _, a := range nodes {
		if v := a.ask("order", 1, false).first(); v < 500 {
			t.Errorf("%d after 500 was set", v)
		}
	}
}

// vitess #3116: a primary was replaced, became the primary once more, and used the values that it had cached
// before, which the other one had issued as well. Here each block belongs to one node for ever.
func TestNodeThatWasCutOffKeepsItsBlock(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.create("order", plain(), settings(1000))
	all := newLedger(t)
	all.add(a.ask("order", 10, false))
	a.store.Partition()
	for range 50 {
		all.add(b.ask("order", 20, false))
		s.run(time.Second)
	}
	all.add(a.ask("order", 10, false)) // from its block, without ZooKeeper
	a.store.Heal()
	s.run(2 * stageConfirm)
	for range 10 {
		all.add(a.ask("order", 20, false))
		all.add(b.ask("order", 20, false))
		s.run(time.Second)
	}
}

// medis #2: the service and its Redis were restarted, Redis had an old file, and the IDs fell from 17,154,319 to
// 79,511. Here the node remembers the record over its restart, and skips what may have been issued.
func TestNodeAndZooKeeperAreRestartedWithOldData(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1_000_000))
	copied := s.mem.Snapshot()
	all := newLedger(t)
	for range 20 {
		all.add(a.ask("order", 10_000, false))
		s.run(time.Second)
	}
	w, _ := a.is.witness()
	file := filepath.Join(t.TempDir(), "sequences.cache")
	if err := saveWitness(file, w); err != nil {
		t.Fatal(err)
	}
	s.lose(copied, 9)
	a.restart(file)
	s.run(3 * stageConfirm)
	all.add(a.ask("order", 10_000, false))
}

// KAFKA-20031: a comparison by < in place of <= let a response overlap the block in use by one. Here the stock
// refuses a block that begins below the end of the last one.
func TestBlocksDoNotOverlapByOne(t *testing.T) {
	for first, want := range map[int64]bool{8: false, 9: false, 10: true, 11: true} {
		var stock sequence.Stock
		stock.Add(sequence.Block{First: 0, End: 10})
		if ok := stock.Add(sequence.Block{First: first, End: 20}); ok != want {
			t.Errorf("a block from %d on, after one up to 9: %v", first, ok)
		}
	}
}
