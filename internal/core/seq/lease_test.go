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

// The owner is cut off. Its clocks are slow by 5 %, those of the other node are right.
func TestClocksThatRunApart(t *testing.T) {
	for _, lease := range []time.Duration{record.MinLease, record.DefaultLease, record.MaxLease} {
		s, nodes := newTicks(t, lease, 2)
		a, b := nodes[0], nodes[1]
		a.SetRates(950, 950)
		s.cutOffOwner(lease, a, b)
	}
}

// The owner is cut off. The boot clock of one node is wrong, and its wall clock is right.
func TestOwnerAndBootClocksAtAnyRate(t *testing.T) {
	for name, rates := range map[string][2]int64{ // of the owner and of the other node
		"the owner's is slow":     {500, 1000},
		"the owner's is fast":     {1150, 1000},
		"the other one's is fast": {1000, 2000},
		"all are wrong":           {850, 1150},
	} {
		t.Log(name)
		s, nodes := newTicks(t, record.DefaultLease, 2)
		nodes[0].SetRates(rates[0], 1000)
		nodes[1].SetRates(rates[1], 1000)
		s.cutOffOwner(record.DefaultLease, nodes[0], nodes[1])
	}
}

// cutOffOwner makes a the owner, and cuts it off when it has just renewed its lease and b has read that. Both are asked
// until b is the owner.
func (s *stage) cutOffOwner(lease time.Duration, a, b *actor) {
	s.t.Helper()
	a.restart()
	b.restart()
	s.run(4 * time.Second)
	m := a.owner("ticks")
	s.pass(lease / 3)
	for until := m.LeaseUntil(); m.LeaseUntil() == until; {
		s.pass(10 * time.Millisecond)
	}
	b.ask("ticks", 1, true)
	_ = b.round() // it has read the record at once
	a.store.Partition()
	c := s.contest("ticks")
	c.run(2*lease, a, b)
	if c.values[a] == 0 || c.values[b] == 0 {
		s.t.Errorf("%s: the nodes have given %d and %d values", lease, c.values[a], c.values[b])
	}
}

// The owner gets a request after its lease has ended. Its last round was before.
func TestClockIsReadAfterTheRequest(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 2)
	a, b := nodes[0], nodes[1]
	a.owner("ticks")
	b.ask("ticks", 1, true)
	_ = b.round()
	a.gone()
	s.pass(4 * time.Second)
	b.owner("ticks")
	if c := a.ask("ticks", 1, true); c.done {
		t.Errorf("%v, %v", c.runs, c.err)
	}
}

// Another node reads the record, and the answer takes long. Meanwhile the owner renews its lease.
func TestTakeOverCountsFromTheEndOfTheRead(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 2)
	a, b := nodes[0], nodes[1]
	m := a.owner("ticks")
	b.gone()
	slow := true
	b.calls = func(c memzk.Call) memzk.Fault {
		if slow && c.Path == record.Path("ticks") {
			slow = false
			s.pass(2 * time.Second) // the owner alone has rounds
			if sentAt(m) < (s.now-1000)*1e6 {
				t.Error("the owner has not renewed its lease")
			}
		}
		return memzk.NoFault
	}
	b.ask("ticks", 1, true)
	_ = b.round()
	s.nodes = append(s.nodes, b)
	a.store.Partition()
	c := s.contest("ticks")
	if c.run(4*time.Second, a, b); slow || c.values[a] == 0 || c.values[b] == 0 {
		t.Errorf("the nodes have given %d and %d values", c.values[a], c.values[b])
	}
}

// ZooKeeper applies a renewal at once, and acknowledges it late.
func TestLeaseCountsFromTheSending(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 2)
	a, b := nodes[0], nodes[1]
	m := a.owner("ticks")
	a.gone()
	late := true
	a.store.SetDone(func(c memzk.Call, _, _ error) {
		if late && c.Touches(record.Path("ticks")) {
			late = false
			b.ask("ticks", 1, true)
			s.pass(1500 * time.Millisecond)
		}
	})
	for s.pass(900 * time.Millisecond); late; s.pass(100 * time.Millisecond) {
		_ = a.round()
	}
	if !m.Owns() || s.now*1e6 >= m.LeaseUntil() {
		t.Error("the lease has ended")
	}
	a.store.Partition()
	c := s.contest("ticks")
	if c.run(3*time.Second, a, b); c.values[a] == 0 || c.values[b] == 0 {
		t.Errorf("the nodes have given %d and %d values", c.values[a], c.values[b])
	}
}

// A renewal is lost on the way to ZooKeeper.
func TestUnknownRenewalEndsTheOwnership(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 2)
	a, b := nodes[0], nodes[1]
	m := a.owner("ticks")
	b.ask("ticks", 1, true)
	_ = b.round()
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Write() {
			return memzk.FailBefore
		}
		return memzk.NoFault
	}
	for m.Owns() && s.now < 60_000 {
		s.pass(10 * time.Millisecond)
	}
	c := s.contest("ticks")
	if c.run(4*time.Second, a, b); c.values[a] != 0 || c.values[b] == 0 {
		t.Errorf("the nodes have given %d and %d values", c.values[a], c.values[b])
	}
}

// The lease ends and a request comes while the owner gives the section back, and that write is lost on the way. The node
// knows that nobody but itself was the owner.
func TestLostGiveBackAfterTheLease(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	m := a.owner("ticks")
	var c *call
	a.calls = func(k memzk.Call) memzk.Fault {
		if c != nil || !k.Write() || s.now*1e6-m.AskedAt <= int64(time.Minute) {
			return memzk.NoFault
		}
		for s.now*1e6 < m.LeaseUntil() {
			s.now += 10
		}
		c = a.ask("ticks", 1, true)
		return memzk.FailBefore
	}
	for began := s.now; c == nil && s.now < began+120_000; {
		s.pass(10 * time.Millisecond)
	}
	began := s.now
	if c.first(); s.now > began+500 {
		t.Errorf("the node takes the section %d ms after its own lease", s.now-began)
	}
}

// loseTakeOver: the owner is cut off, and another node takes over and issues more. Then ZooKeeper loses that.
func loseTakeOver(t *testing.T, lease time.Duration) (s *stage, a, b *actor) {
	s, nodes := newTicks(t, lease, 2)
	a, b = nodes[0], nodes[1]
	m := a.owner("ticks")
	a.store.Partition()
	copied := s.Mem.Snapshot()
	s.contest("ticks").run(lease+lease/2+time.Second, b)
	if v := b.ask("ticks", 100, true).first(); v <= m.Known.Next {
		t.Fatalf("the other node gives %d, and the owner holds the values up to %d", v, m.Known.Next)
	}
	s.Mem.Restore(copied)
	s.Mem.SetEpoch(9)
	return s, a, b
}

// The owner comes back to the record as it left it, after its lease has ended. It may renew before it may take
// positions.
func TestRenewalAfterTheEndIsANewOwnership(t *testing.T) {
	s, a, b := loseTakeOver(t, record.DefaultLease)
	b.store.Partition()
	a.store.Heal()
	a.hold = func() Slot { return Slot{Path: a.slot, Version: store.AnyVersion, Wait: stageConfirm} }
	s.pass(3500 * time.Millisecond)
	if c := a.ask("ticks", 1, true); c.finish().err == nil {
		t.Errorf("%v", c.runs)
	}
}

// A node that was the owner takes over again, after another one.
func TestLanesBeginAnewAtATakeOver(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 2)
	a, b := nodes[0], nodes[1]
	c := s.contest("ticks")
	for range 3 {
		c.run(500*time.Millisecond, a, b)
		a.store.Partition()
		c.run(4*time.Second, a, b)
		a.store.Heal()
		a, b = b, a
	}
	if c.values[a] == 0 || c.values[b] == 0 {
		t.Errorf("the nodes have given %d and %d values", c.values[a], c.values[b])
	}
}

func TestStoppedOwnerLeavesNoGap(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 2)
	a, b := nodes[0], nodes[1]
	for k := range int64(40) {
		if v := a.ask("ticks", 1, true).first(); v != k+1 {
			t.Fatalf("%d after %d", v, k)
		}
	}
	if err := a.is.giveBack(context.Background()); err != nil {
		t.Error(err)
	}
	began := s.now
	if v := b.ask("ticks", 1, true).first(); v != 41 || s.now-began > 100 {
		t.Errorf("%d after 40, and %d ms", v, s.now-began)
	}
}

// In a new session, the owner goes on with what it holds, but takes no more positions.
func TestOwnerRenewsBeforeItMayTake(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	m := a.owner("ticks")
	a.store.Expire()
	a.hold = func() Slot { return Slot{Path: a.slot, Version: store.AnyVersion, Wait: stageConfirm} }
	s.pass(10 * time.Second)
	end, next := m.Known.Next, s.view("ticks").Record.Next
	if c := a.ask("ticks", 1, true); !c.done || c.err != nil {
		t.Fatalf("the owner has lost the sequence: %v", c.err)
	}
	if r := a.ask("ticks", int(end), true).reason(); r != record.Confirming {
		t.Error(r)
	}
	if r := s.view("ticks").Record; m.Known.Next != end || r.Next != next {
		t.Errorf("the owner has taken positions up to %d, the record has %d", m.Known.Next, r.Next)
	}
}

// ZooKeeper has lost a take-over. The owner that it has lost is cut off, and has a long lease. An operator may have
// said where the sequence goes on.
func TestLostOwnerIsWaitedFor(t *testing.T) {
	for _, given := range []bool{true, false} {
		for _, vouched := range []bool{true, false} {
			s, nodes := newTicks(t, record.MaxLease, 3)
			s.loseOwner(nodes[0], nodes[1], nodes[2], given, vouched)
		}
	}
}

// loseOwner makes a the owner, then b. given: a has given the sequence back. Only heard is connected when ZooKeeper
// loses the take-over.
func (s *stage) loseOwner(a, b, heard *actor, given, vouched bool) {
	s.t.Helper()
	a.owner("ticks")
	if given {
		if err := a.is.giveBack(context.Background()); err != nil {
			s.t.Fatal(err)
		}
		a.restart()
	}
	copied := s.Mem.Snapshot()
	a.store.Partition()
	s.pass(4 * time.Second)
	c := s.contest("ticks")
	c.run(record.MaxLease+5*time.Second, b)
	b.store.Partition()
	s.Mem.Restore(copied)
	s.Mem.SetEpoch(9)
	heard.noteLoss()
	if next := int64(1_000_000); vouched {
		s.set("ticks", operator.Change{Next: &next, VouchedIn: 1})
	}
	a.store.Heal()
	for began := c.now; c.values[a]+c.values[heard] == 0 && c.now < began+2*record.MaxLease.Milliseconds(); {
		c.run(100*time.Millisecond, a, heard)
	}
	c.ask(b)
	if c.values[a]+c.values[heard] == 0 || c.values[b] == 0 {
		s.t.Errorf("given back: %v, vouched: %v: somebody gives no values", given, vouched)
	}
}

// Both clocks of the owner are so slow that another node has taken its place before its lease has ended. It issues
// nothing more when it reads that, and does not renew.
func TestOwnerReadsThatItIsReplaced(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 2)
	a, b := nodes[0], nodes[1]
	a.SetRates(400, 400)
	a.restart()
	s.run(8 * time.Second)
	m := a.owner("ticks")
	a.store.Partition()
	c := s.contest("ticks")
	c.run(4*time.Second, b)
	a.store.Heal()
	if _ = a.round(); c.values[b] == 0 || lapses(m) > 0 {
		t.Fatalf("the other node has given %d values, and %d leases have ended", c.values[b], lapses(m))
	}
	c.run(4*time.Second, a, b)
	if r := s.view("ticks").Record; r.Term != 2 {
		t.Errorf("term %d", r.Term)
	}
}

// A node takes positions only while its slot is as its last heartbeat has left it (S10).
func TestTakingNeedsTheSlotUnchanged(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 1, false).first()
	before := s.view("order").Record.Next
	a.hold = func() Slot { return Slot{Path: a.slot, Version: 7, Incarnation: anyIncarnation} } // another write came
	a.ask("order", 1000, false)
	s.run(time.Second)
	if after := s.view("order").Record.Next; after != before {
		t.Errorf("the next position was %d, and is %d", before, after)
	}
	a.hold = nil
	a.ask("order", 1000, false).finish()
	if after := s.view("order").Record.Next; after == before {
		t.Errorf("the next position is still %d", after)
	}
}

// An owner stops when it has seen a loss of data, and before anybody has put /seq back.
func TestOwnerStopsBeforeTheStateIsPutBack(t *testing.T) {
	s := newStage(t)
	before := s.Mem.Snapshot()
	a := s.node()
	s.ordered("ticks", record.DefaultLease, 1000)
	a.ask("ticks", 1, true).first()
	s.Mem.Restore(before)
	a.noteLoss()
	later := record.Snapshot{Cluster: &record.Cluster{UUID: "c", Incarnation: 1}}
	a.is.follower.losses.Observe(losses.Read{Snapshot: later, Answered: a.is.issuer.cfg.Elapsed.Now()}, "c", stageConfirm)
	var lost *lostError
	if err := a.is.giveBack(context.Background()); !errors.As(err, &lost) || !lost.later {
		t.Errorf("%v", err)
	}
}
