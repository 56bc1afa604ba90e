package seq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/losses"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// lose puts ZooKeeper back to a copy. All sessions end.
func (s *stage) lose(copied *memzk.Snapshot, zkEpoch uint32) {
	s.Mem.Restore(copied)
	s.Mem.SetEpoch(zkEpoch)
	for _, a := range s.nodes {
		a.store.Expire()
	}
}

// A node gives back nothing while it may not write, or when data may have been lost since its block.
func TestNoReturnInDoubt(t *testing.T) {
	for name, spoil := range map[string]func(a, b *actor){
		"in a new session": func(a, _ *actor) { a.store.Expire(); a.hold = func() Slot { return Slot{} } },
		"within the confirming time": func(a, _ *actor) {
			a.hold = func() Slot { return Slot{Path: a.slot, Version: store.AnyVersion, Wait: time.Second} }
		},
		"while another node puts records back": func(a, _ *actor) {
			k := &a.is.follower.losses
			told := *k.Known()
			told.PutAt = ptr(told.ToldPutBack() + 1)
			k.Learn(told, losses.Reading{}, a.is.issuer.cfg.Elapsed.Now(), true)
			k.Settle()
		},
		"in a later incarnation": func(_, b *actor) {
			b.noteLoss()
			_ = b.round()
		},
	} {
		s := newStage(t)
		a, b := s.node(), s.node()
		s.create("order", plain(), settings(1000))
		a.ask("order", 10, false).first()
		before := s.view("order").Record.Next
		spoil(a, b)
		_ = a.is.giveBack(context.Background())
		if next := s.view("order").Record.Next; next != before {
			t.Errorf("%s: the next position is %d, not %d", name, next, before)
		}
	}
}

func TestSetRefusesWhatCannotBeUndone(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 10, false).first()
	next, top := int64(1), int64(1_000_000)
	for name, c := range map[string]operator.Change{
		"a lower next":             {Next: &next},
		"a lower next, vouched":    {Next: &next, VouchedIn: s.incarnation()},
		"a lower max":              {Max: &top},
		"above the hard ceiling":   {Settings: func(set *record.Settings) { set.Ceiling = 1001 }},
		"a higher hard ceiling":    {Settings: func(set *record.Settings) { set.Ceiling, set.HardCeiling = 1001, 1001 }},
		"a block of no positions":  {Settings: func(set *record.Settings) { set.Block = 0 }},
		"a supply of no duration":  {Settings: func(set *record.Settings) { set.SupplyMs = 0 }},
		"a hold of no duration":    {Settings: func(set *record.Settings) { set.HoldMs = 0 }},
		"a ceiling of no position": {Settings: func(set *record.Settings) { set.Ceiling = 0 }},
	} {
		before := s.view("order")
		if r, err := s.operator().Set(context.Background(), "order", c); err == nil {
			t.Errorf("%s passes: %+v", name, r)
		}
		if after := s.view("order"); after.Stat != before.Stat {
			t.Errorf("%s is written", name)
		}
	}
}

// A server that lags behind has older records than the node knows. Nothing is lost.
func TestServerThatLagsIsNoLoss(t *testing.T) {
	s, a := newOrder(t)
	s.run(4 * time.Second)
	before := s.Mem.Snapshot()
	a.ask("order", 100, false).first()
	s.set("order", operator.Change{Settings: func(set *record.Settings) { set.SupplyMs++ }})
	s.run(4 * time.Second)
	for range 5 {
		a.store.LagTo(before)
		s.run(3 * time.Second)
		a.store.LagTo(before)
		a.ask("order", 100, false).first()
	}
	if e := s.incarnation(); e != 0 {
		t.Errorf("the incarnation is %d, not 0", e)
	}
}

// A node that joins another cluster drops the values of the first one, and uses no records of the first.
func TestOtherClusterIsNotServed(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 10, false).first()
	a.cluster.UUID = "d"
	s.run(4 * time.Second)
	if c := a.ask("order", 1, false).finish(); c.done && c.err == nil {
		t.Errorf("%v is issued", c.runs)
	}
	if err := a.round(); err == nil || errors.Is(err, store.ErrUnreachable) {
		t.Error(err)
	}
}

// Somebody puts an older copy of a template back. A node that knows a later one creates nothing by it.
func TestOlderTemplateCreatesNothing(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("t:*", 1, 9)
	older := *s.view("t:*").Record
	a.ask("t:1", 1, false).first()
	s.write(record.Path("t:*"), older.Marshal())
	if r := a.ask("t:2", 1, false).reason(); r != record.Confirming {
		t.Error(r)
	}
	if v := s.view("t:2"); v.Record != nil || v.State.Incarnation != 1 {
		t.Errorf("created %+v, %+v", v.Record, v.State)
	}
}

// Nobody asks for values, and no slot shows that ZooKeeper has lost data. A node reads what it knows again in each
// session.
func TestNewSessionReadsAllRecordsAgain(t *testing.T) {
	s, a := newOrder(t)
	s.run(4 * time.Second)
	copied := s.Mem.Snapshot()
	a.ask("order", 1, false).first() // the node needs no other block
	s.lose(copied, 9)
	s.run(4 * time.Second)
	if e := s.incarnation(); e != 1 {
		t.Errorf("the incarnation is %d, not 1", e)
	}
}

// ZooKeeper loses a block that a node has taken, and another node takes the same positions before the first one has
// compared its records. Both records have as many writes. Either node may notice the loss first.
func TestBlockThatARivalHasTakenIsDropped(t *testing.T) {
	for _, rivalFirst := range []bool{false, true} {
		s := newStage(t)
		a, b := s.node(), s.node()
		s.create("order", plain(), settings(1000))
		s.run(4 * time.Second)
		copied := s.Mem.Snapshot()
		a.ask("order", 1, false).first()
		s.lose(copied, 9)
		b.ask("order", 1, false).first()
		end := s.view("order").Record.Next
		if rivalFirst {
			b.noteLoss()
		}
		s.run(4 * time.Second)
		if rivalFirst == (len(a.reports) > 0) || s.incarnation() != 1 {
			t.Errorf("rival first %v: the incarnation is %d, reported is %v", rivalFirst, s.incarnation(), a.reports)
		}
		s.run(stageConfirm)
		if v := a.ask("order", 1, false).first(); v <= end {
			t.Errorf("rival first %v: %d of the first %d", rivalFirst, v, end)
		}
	}
}

// In a new cluster no node has read /seq, so none has anything to compare, and none waits for another. Later a node
// must compare what it knows in each session.
func TestNewNodeHasNothingToCompare(t *testing.T) {
	s := newStage(t)
	a := s.newNode()
	a.restart()
	if f := a.is.issuer.Followed(); f.Compares || f.Compared != nil {
		t.Errorf("it says %s", told(f))
	}
	s.run(stageConfirm)
	if f := a.is.issuer.Followed(); f.Compared == nil || *f.Compared != 0 {
		t.Errorf("it says %s", told(f))
	}
	a.store.Expire()
	if f := a.is.issuer.Followed(); !f.Compares || f.Compared != nil {
		t.Errorf("in a new session it says %s", told(f))
	}
}

// An operator who raises the next value need not know how many were issued before ZooKeeper lost data. The next
// block skips, unless the operator vouches for it.
func TestRaisedNextSkipsAfterALoss(t *testing.T) {
	for vouched, want := range map[bool]bool{false: true, true: false} {
		s := newStage(t)
		a := s.node()
		s.create("order", plain(), settings(1000))
		a.ask("order", 10, false).first()
		a.noteLoss()
		_ = a.round()
		next := int64(5000)
		var in int64
		if vouched {
			in = s.incarnation()
		}
		s.set("order", operator.Change{Next: &next, VouchedIn: in})
		v := s.view("order")
		if got := v.Record.NextBlockOutlook(*v.State).Skip > 0; got != want {
			t.Errorf("vouched %v: %+v", vouched, v.Record)
		}
	}
}

// Another node puts the sequence time back between the heartbeat of a node and its first block after a loss of data, or
// between the block's read and its write. The skip is by the time that was put back.
func TestSkipKnowsTheTimeThatIsPutBack(t *testing.T) {
	for name, due := range map[string]func(c memzk.Call, reads int) bool{
		// the first one follows changes
		"before the read":  func(c memzk.Call, reads int) bool { return c.Op == "get" && reads == 2 },
		"before the write": func(c memzk.Call, _ int) bool { return c.Op == "multi" && c.Touches(record.Path("order")) },
	} {
		s := newStage(t)
		a := s.node()
		s.create("order", plain(), settings(1000))
		a.ask("order", 10, false).first()
		s.run(4 * time.Second)
		a.noteLoss()
		s.run(stageConfirm)
		before := s.view("order").Record
		put, reads := false, 0
		a.calls = func(c memzk.Call) memzk.Fault {
			if c.Op == "get" && c.Path == record.ClusterPath {
				reads++
			}
			if !put && due(c, reads) {
				put = true
				st := *s.view("order").State
				st.Time += 500_000
				s.write(record.StatePath, st.Marshal())
			}
			return memzk.NoFault
		}
		s.now, a.is.follower.current = s.now+5000, false
		a.ask("order", int(a.is.issuer.series.findOrAdd("order").segment().stock.Left()), false).first() // so that it needs a block
		for range 3 {
			_ = a.round()
		}
		if first := a.is.issuer.series.findOrAdd("order").segment().lastBlock.First; !put || first < before.Next+500_000 {
			t.Errorf("%s: the block begins at %d, the record went on at %d in incarnation %d: %v", name, first,
				before.Next, before.Incarnation, put)
		}
	}
}

// Between the read of a record and the write, another node takes a block, and ZooKeeper loses just that. The write
// fails, because the session has ended.
func TestBlockIsTakenInTheSessionOfItsRead(t *testing.T) {
	s := newStage(t)
	gone, a := s.node(), s.node()
	s.create("order", plain(), settings(1000))
	s.run(4 * time.Second)
	copied := s.Mem.Snapshot()
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Op == "multi" && c.Touches(record.Path("order")) {
			a.calls = nil
			gone.ask("order", 10, false).first()
			s.Mem.Restore(copied)
		}
		return memzk.NoFault
	}
	a.ask("order", 10, false)
	_ = a.round()
	if r := s.view("order").Record; a.calls != nil || r.Next != 0 {
		t.Errorf("a block is taken: %+v", r)
	}
}

// A node joins another cluster, and may not take positions yet. What it knows of the first one shows no loss there.
func TestJoiningAnotherClusterShowsNoLoss(t *testing.T) {
	for name, row := range map[string]struct {
		other func(s *stage)
		after int64 // ms since the last read of /seq
		want  record.Reason
	}{
		"nobody has made /seq": {func(s *stage) {
			s.erase(record.Path("order"), record.BucketPath("order"), record.RecordsDir, record.StatePath)
		}, 4000, record.Confirming},
		"between two reads of /seq": {func(s *stage) {
			s.erase(record.Path("order"))
			s.write(record.StatePath, record.State{Cluster: "d"}.Marshal())
		}, 100, record.NoSequence},
	} {
		s, a := newOrder(t)
		a.ask("order", 10, false).first()
		s.run(4 * time.Second)
		row.other(s)
		s.write(record.ClusterPath, store.Marshal(record.Cluster{UUID: "d"}))
		a.cluster.UUID, a.deaf = "d", true
		a.hold = func() Slot { return Slot{Wait: time.Second} }
		s.now += row.after
		c := a.ask("order", 5000, false)
		if err := a.round(); err != nil || c.again().reason() != row.want || len(a.reports) > 0 {
			t.Errorf("%s: %v, %v, reports %v", name, err, c.err, a.reports)
		}
	}
}
