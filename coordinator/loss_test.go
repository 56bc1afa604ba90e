package coordinator

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// The tests in this file show how holders and new nodes behave when ZooKeeper has lost data.

// wipe deletes all data and sessions, as if the server were a new one.
func (l *lab) wipe() {
	l.mem.Wipe()
	l.forget()
}

// takeOver writes a record of another node into a slot, with the given term, and returns it. An
// operator has taken the slot from its holder before.
func (l *lab) takeOver(worker int, term int64, confirmed bool) Slot {
	l.Helper()
	s := Slot{Node: "other", Term: term, Nonce: "others", LeaseUntil: l.now + millis(labLease), Confirmed: confirmed, History: l.taken(worker)}
	l.put(worker, s)
	return s
}

// taken returns the history of a slot that an operator has just taken from its holder. It is
// empty if the slot has no record.
func (l *lab) taken(worker int) (h History) {
	if data, _, err := l.admin.Get(l.Context(), slotPath(worker)); err == nil {
		h[0] = PastHolder{Node: parseSlot(data).Node, Term: 1, Ended: EndedTaken}
	}
	return h
}

// Another node has taken over a slot. The former holder is fenced even if /cluster is missing.
// Its lease may have run out by other clocks although it runs by its own.
func TestFencedAlthoughTheClusterRecordIsLost(t *testing.T) {
	for name, after := range map[string]func(l *lab){
		"cluster missing":       func(l *lab) {},
		"cluster made anew":     func(l *lab) { l.init(Cluster{UUID: "other", Slots: 4, LeaseMs: l.cl.LeaseMs}) },
		"confirmed, equal term": func(l *lab) { l.takeOver(0, 1, true) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			l.takeOver(0, 2, true)
			l.remove(clusterPath)
			after(l)
			was := l.slot(0)
			_, err := a.beat()
			wantFenced(t, err)
			if got := l.slot(0); got != was {
				t.Errorf("the new holder's record was overwritten by %+v", got)
			}
		})
	}
}

// A holder is cut off until another node takes its slot. The holder's clock goes back, so that
// its lease still runs by that clock. Then ZooKeeper loses the other node's record. The holder
// must not go on, because its lease has run out by the leader's clock.
func TestClockThatWentBackKeepsNoLease(t *testing.T) {
	for name, tc := range map[string]struct {
		skew time.Duration
		lose func(l *lab, copied *zkstore.MemSnapshot)
	}{
		"seconds, wiped":    {-15 * time.Second, func(l *lab, _ *zkstore.MemSnapshot) { l.wipe() }},
		"an hour, wiped":    {-time.Hour, func(l *lab, _ *zkstore.MemSnapshot) { l.wipe() }},
		"seconds, old data": {-15 * time.Second, (*lab).putBack},
		"an hour, old data": {-time.Hour, (*lab).putBack},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			copied := l.mem.Snapshot()
			a.skew = millis(tc.skew)
			b := a.succeededBy("B")
			tc.lose(l, copied)
			a.sess.Heal()
			if beat, err := a.beat(); err == nil && (beat.Confirmed || beat.Wait != labConfirm) {
				t.Errorf("goes on with %+v", beat)
			}
			l.pass(time.Second)
			if beat := b.mustBeat(); !beat.Lost || !b.issue() {
				t.Errorf("%+v", beat)
			}
			l.pass(labConfirm)
			if a.up {
				_, err := a.beat()
				wantFenced(t, err)
			}
			l.disjoint()
		})
	}
}

func (l *lab) putBack(copied *zkstore.MemSnapshot) {
	l.mem.Restore(copied)
	l.mem.ExpireOrphans()
	l.forget()
}

// The leader's clock has always been off by more than a lease, and most voters agree with the
// nodes. After a loss of data the nodes go on serving.
func TestLeaderWithAWrongClock(t *testing.T) {
	for _, skew := range []time.Duration{-2 * time.Minute, 2 * time.Minute} {
		l := newLab(t, 2)
		a, b := l.node("A"), l.node("B")
		for _, m := range []*member{a, b} {
			m.skew, m.agreed = millis(skew), true
			m.must(m.register())
			m.confirm()
		}
		l.serve(10 * time.Second)
		l.wipe()
		l.pass(time.Second)
		for _, m := range []*member{a, b} {
			if beat := m.mustBeat(); !beat.Confirmed || !m.issue() {
				t.Errorf("leader ahead by %s: %+v", -skew, beat)
			}
		}
		l.serve(10 * time.Second)
		l.disjoint()
	}
}

// A holder's clock has been behind the leader's for a while, and most voters do not agree with
// it. The holder's lease ends by the leader's clock, because a node that takes the slot goes by
// the leader's clock as well.
func TestLeaseExpiresByTheLeadersClock(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	a.skew = -millis(15 * time.Second)
	l.pass(20 * time.Second)
	a.mustBeat() // reading: 15 s behind
	b := a.succeededBy("B")
	l.wipe()
	a.sess.Heal()
	_, err := a.beat()
	wantFenced(t, err)
	l.pass(time.Second)
	if beat := b.mustBeat(); !b.issue() {
		t.Errorf("B: %+v", beat)
	}
	l.disjoint()
}

// During a freeze ZooKeeper is put back to a copy. The freeze in the copy ends before the leases
// that were renewed since. The holder that notices the loss must make the freeze longer.
func TestFreezeOutlastsTheLeasesOfASecondLoss(t *testing.T) {
	l := newLab(t, 4)
	a, b := l.serving("A"), l.serving("B")
	a.wait, b.wait = labW, labW
	l.serve(time.Minute)
	l.remove(slotPath(0))
	l.serve(time.Minute)
	copied := l.mem.Snapshot()
	first := l.cluster().FrozenUntil

	l.serve(time.Minute)
	b.sess.Partition()
	l.mem.Restore(copied)
	l.mem.ExpireOrphans()
	l.forget()
	a.mustBeat()
	if until := l.cluster().FrozenUntil; until < b.claim.LeaseUntil || until <= first {
		t.Errorf("frozen until %d, first until %d, B has a lease until %d", until, first, b.claim.LeaseUntil)
	}

	// A holder that notices the same loss a second later does not write /cluster again.
	_, before, err := l.admin.Get(t.Context(), clusterPath)
	b.sess.Heal()
	l.pass(time.Second)
	b.mustBeat()
	if _, after, err2 := l.admin.Get(t.Context(), clusterPath); err != nil || err2 != nil || after.Version != before.Version {
		t.Errorf("/cluster was written again: %+v, %+v, %v %v", before, after, err, err2)
	}
}

// Another cluster has taken the place of ours, and a node confirms in it while our holder puts
// ours back. The holder is fenced and overwrites nothing.
func TestReassertGivesWayToAClusterConfirmedMeanwhile(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	l.wipe()
	newer := Cluster{UUID: "newer", Slots: 4, LeaseMs: l.cl.LeaseMs}
	l.init(newer)
	l.put(0, Slot{Node: "newcomer", Nonce: "n", Term: 1, LeaseUntil: l.now + 1})
	was := l.slot(0)
	a.hook = func(c zkstore.Call) zkstore.Fault {
		if c.Op == "ensure root" || c.Op == "set" { // after judge
			newer.Confirmed = true
			_, _ = l.admin.Set(t.Context(), clusterPath, newer.marshal(), 0)
		}
		return zkstore.NoFault
	}
	_, err := a.beat()
	wantFenced(t, err)
	if got := l.slot(0); got != was {
		t.Errorf("the newer cluster's slot was overwritten by %+v", got)
	}
}

// All slots and their parent are deleted, and in one case /cluster. The holders put them back.
func TestHoldersComeBackIntoAnEmptyTree(t *testing.T) {
	for _, gone := range [][]string{{slotPath(0), slotPath(1), workersPath}, {slotPath(0), slotPath(1), workersPath, clusterPath}} {
		l := newLab(t, 2)
		a, b := l.serving("A"), l.serving("B")
		for _, p := range gone {
			l.remove(p)
		}
		for _, m := range []*member{a, b} {
			if beat := m.mustBeat(); !beat.Lost || !beat.Confirmed {
				t.Errorf("%s: %+v", m.name, beat)
			}
		}
		l.pass(time.Second)
		if !a.issue() || !b.issue() {
			t.Error("a holder issues nothing")
		}
		if s := l.slot(1); s.Node != b.claim.Node || !l.cluster().AllFrozen(l.now) {
			t.Errorf("%+v in %+v", s, l.cluster())
		}
		l.disjoint()
	}
}

// After a loss of data, holders put their records back and go on issuing. No other node gets
// their slots.
func TestHoldersReassert(t *testing.T) {
	for name, lose := range map[string]func(l *lab){
		"wiped": (*lab).wipe,
		"restored from an older copy": func(l *lab) {
			l.mem.Restore(l.copied)
			l.mem.ExpireOrphans()
			l.forget()
		},
		"restored from before they came": func(l *lab) {
			l.mem.Restore(l.empty)
			l.mem.ExpireOrphans()
			l.forget()
		},
		"slots deleted":   func(l *lab) { l.remove(slotPath(0)); l.remove(slotPath(1)) },
		"cluster deleted": func(l *lab) { l.remove(clusterPath) },
		"another, not confirmed": func(l *lab) {
			l.wipe()
			l.init(Cluster{UUID: "new", Slots: 2, LeaseMs: l.cl.LeaseMs, ConfirmMs: l.cl.ConfirmMs})
		},
		"slots held by others, not confirmed": func(l *lab) {
			l.put(0, Slot{Node: "x", Nonce: "x", Term: 1, LeaseUntil: l.now + 1})
			l.put(1, Slot{Node: "x", Nonce: "x", Term: 1, LeaseUntil: l.now + millis(labW)})
			l.forget()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			l.empty = l.mem.Snapshot()
			a, b := l.serving("A"), l.serving("B")
			l.serve(time.Minute)
			l.copied = l.mem.Snapshot()
			l.serve(time.Minute)
			was := map[*member]Claim{a: a.claim, b: b.claim}
			lose(l)
			l.pass(time.Second)
			for _, m := range []*member{a, b} {
				beat := m.mustBeat()
				s := l.slot(m.claim.Worker)
				lost := name != "cluster deleted" || m == a // A has put it back
				if beat.Lost != lost && name != "another, not confirmed" || !m.issue() || s.Nonce != m.claim.Nonce || s.LeaseUntil < was[m].LeaseUntil || !s.Confirmed {
					t.Errorf("%s: %+v, slot %+v", m.name, beat, s)
				}
				if beat.Lost && (m.claim.Term <= was[m].Term || m.claim.Nonce == was[m].Nonce || m.claim.Floor != was[m].Floor) {
					t.Errorf("%s: %+v after %+v", m.name, m.claim, was[m])
				}
			}
			cl := l.cluster()
			if cl.UUID != l.cl.UUID || !cl.Confirmed || cl.HighestSlot != 1 || cl.Open != "" || cl.Incarnation == 0 || cl.FrozenUntil != l.now+millis(labW)+lossTolerance {
				t.Errorf("%+v", cl)
			}
			wantErrAs[*FrozenError](t, l.node("C").register())
			l.serve(time.Minute)
			if a.claim.Worker != 0 || b.claim.Worker != 1 {
				t.Error("a holder lost its slot")
			}
			l.disjoint()
		})
	}
}

// Another cluster has taken the place of ours, and a node has confirmed in it. Our holder is
// fenced and writes nothing.
func TestConfirmedClusterFencesTheOldHolders(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	l.wipe()
	l.init(Cluster{UUID: "new", Slots: 2, LeaseMs: l.cl.LeaseMs, ConfirmMs: l.cl.ConfirmMs})
	b := l.node("B")
	b.disk.cl = l.cluster()
	b.crash()
	b.must(b.register())
	b.confirm()
	_, err := a.beat()
	wantFenced(t, err)
	if s := l.slot(0); s.Node != b.claim.Node || l.cluster().UUID != "new" {
		t.Errorf("%+v, %+v", s, l.cluster())
	}
	wantErrAs[*OtherClusterError](t, a.register())
	if n := len(l.children(ticketsPath)); n != 1 {
		t.Errorf("%d tickets", n)
	}
}

// Resume, Register and Thaw create nothing if /cluster is missing.
func TestNobodyElseMakesACluster(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	a.crash()
	l.wipe()
	for what, f := range map[string]func() error{
		"resume":   a.resume,
		"register": func() error { return l.node("B").register() },
		"thaw":     func() error { _, err := Thaw(t.Context(), l.admin, l.cl, ""); return err },
	} {
		if err := f(); !errors.Is(err, ErrNoCluster) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := l.admin.Get(t.Context(), "/"); !errors.Is(err, zkstore.ErrNoNode) {
		t.Error("something was made")
	}
}

// A holder whose lease has run out freezes registration for the sake of other holders, but only
// if it is the first to notice the loss.
func TestLapsedHolderFreezesOnce(t *testing.T) {
	for _, row := range []struct {
		name    string
		noticed bool
		want    bool
	}{{"the first to find it", false, true}, {"another has found it before", true, false}} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			cl := l.cluster()
			l.wipe()
			l.pass(labLease)
			if row.noticed {
				cl.Incarnation = a.claim.Incarnation + 1
				l.init(cl)
			}
			_, err := a.beat()
			wantFenced(t, err)
			if got := l.cluster().Frozen(0, l.now); got != row.want {
				t.Errorf("frozen %t, want %t: %+v", got, row.want, l.cluster())
			}
		})
	}
}

// One holder is cut off while another notices a loss of data. The slot of the first is kept for
// as long as its lease may run.
func TestCutOffHolderIsProtected(t *testing.T) {
	l := newLab(t, 2)
	empty := l.mem.Snapshot()
	a, b := l.serving("A"), l.serving("B")
	b.wait = labW
	l.serve(time.Minute)
	b.sess.Partition()
	b.up = false // no heartbeats
	l.mem.Restore(empty)
	l.mem.ExpireOrphans()
	l.forget()
	a.mustBeat()
	c := l.node("C")
	for range 100 {
		// A sends 15 heartbeats, one every 59 s.
		for range 15 {
			l.pass(labLease - time.Second)
			a.mustBeat()
		}
		b.up = true
		b.extend()
		issued := b.issue()
		b.up = false
		if err := c.register(); issued && err == nil {
			t.Fatalf("C has worker %d while B issues", c.claim.Worker)
		} else if err == nil {
			break
		}
	}
	if c.claim.Worker == 1 {
		c.confirm()
	}
	l.disjoint()
}

// A node starts again while ZooKeeper has lost its slot. It starts from its disk alone.
func TestStartedAgainWhileLost(t *testing.T) {
	for name, lose := range map[string]func(l *lab){
		"wiped":        (*lab).wipe,
		"slot deleted": func(l *lab) { l.remove(slotPath(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			l.serve(10 * time.Second)
			a.must(a.halt())
			lose(l)
			l.pass(time.Second)
			a.must(a.start())
			if a.restartedFrom == 0 || !a.issue() {
				t.Fatalf("%+v", a.claim)
			}
			if beat := a.mustBeat(); !beat.Lost || !a.confirmed || l.cluster().FrozenUntil == 0 {
				t.Errorf("%+v", beat)
			}
			l.serve(10 * time.Second)
			if s := l.slot(0); s.Nonce != a.claim.Nonce || !s.Confirmed {
				t.Errorf("%+v", s)
			}
			l.disjoint()
		})
	}
}

func TestThaw(t *testing.T) {
	l := newLab(t, 2)
	a, b := l.serving("A"), l.serving("B")
	b.must(b.leave())
	l.remove(slotPath(0))
	a.mustBeat()
	c := l.node("C")
	wantErrAs[*FrozenError](t, c.register())
	seen := l.cluster()
	if _, err := Thaw(t.Context(), l.admin, seen, ""); err != nil || l.cluster().FrozenUntil != 0 {
		t.Errorf("%+v, %v", l.cluster(), err)
	}
	if _, err := Thaw(t.Context(), l.admin, seen, ""); !errors.Is(err, ErrFreezeChanged) {
		t.Errorf("another freeze than the one that was seen: %v", err)
	}
	c.must(c.register())
	c.confirm()
	l.disjoint()
}

// ZooKeeper is put back to an older copy, in which our lease has run out. A new node takes our
// slot before our next heartbeat. So its term is above ours, and its lease bound may be.
func TestOlderCopyTakenByANewcomer(t *testing.T) {
	for name, tc := range map[string]struct {
		lease    time.Duration // the new node's
		confirms bool
	}{
		"bound below ours":    {lease: time.Second},
		"bound above ours":    {lease: time.Hour},
		"confirmed, too late": {lease: time.Hour, confirms: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a, cut := l.serving("A"), l.serving("B")
			copied := l.mem.Snapshot()
			l.serve(2 * time.Minute)
			cut.sess.Partition()
			l.mem.Restore(copied)
			l.mem.ExpireOrphans()
			l.forget()
			n := l.node("N")
			n.wait = tc.lease
			n.must(n.register())
			if n.claim.Worker != 0 || n.claim.Term <= a.claim.Term {
				t.Fatalf("%+v", n.claim)
			}
			if tc.confirms {
				n.confirm()
				_, err := a.beat()
				wantFenced(t, err)
			} else {
				if beat := a.mustBeat(); !beat.Lost || !beat.Confirmed || a.claim.Term <= n.claim.Term {
					t.Fatalf("%+v", beat)
				}
				_, err := n.beat()
				wantFenced(t, err)
				l.disjoint()
			}
			if cl := l.cluster(); !cl.Frozen(1, cut.claim.LeaseUntil) {
				t.Errorf("the holder that is cut off is not protected: %+v", cl)
			}
		})
	}
}

// An older copy has the same lease bound as the holder's last record. The holder notices the loss
// by the record's version.
func TestOlderCopyByItsVersion(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	a.wait = time.Second // so short that the bound stays
	copied := l.mem.Snapshot()
	l.pass(time.Second)
	a.mustBeat()
	l.mem.Restore(copied)
	l.mem.ExpireOrphans()
	l.forget()
	if beat := a.mustBeat(); !beat.Lost || l.cluster().FrozenUntil == 0 {
		t.Errorf("%+v", beat)
	}
	if beat := a.mustBeat(); beat.Lost {
		t.Errorf("again: %+v", beat)
	}
}

// ZooKeeper is put back to an older copy, and a holder stops before its next heartbeat. It must
// freeze registration first, because its own write hides the loss from other nodes.
func TestStopOnAnOlderCopyFreezes(t *testing.T) {
	for name, finish := range map[string]func(*member) error{"stop": (*member).halt, "release": (*member).leave} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a, cut := l.serving("A"), l.serving("B")
			copied := l.mem.Snapshot()
			l.serve(2 * time.Minute)
			l.mem.Restore(copied)
			l.mem.ExpireOrphans()
			l.forget()
			h := a.claim.LeaseUntil
			a.must(finish(a))
			if cl := l.cluster(); !cl.Frozen(1, cut.claim.LeaseUntil) {
				t.Errorf("%+v", cl)
			}
			if s := l.slot(0); s.Stopped && s.LeaseUntil < h {
				t.Errorf("%+v, %d", s, h)
			}
			l.disjoint()
		})
	}
}

// ZooKeeper is put back to before our node came, and a new node writes our slot as often as we
// had. So the record has the same version. We notice the loss all the same.
func TestOlderCopyOfTheSameVersion(t *testing.T) {
	l := newLab(t, 1)
	empty := l.mem.Snapshot()
	a := l.serving("A")
	_, ours, _ := l.admin.Get(t.Context(), slotPath(0))
	l.mem.Restore(empty)
	l.mem.ExpireOrphans()
	l.forget()
	n := l.node("N")
	n.wait = time.Hour
	n.must(n.register())
	n.crash()
	n.must(n.resume())
	if _, stat, _ := l.admin.Get(t.Context(), slotPath(0)); stat.Version != ours.Version || n.claim.Term <= a.claim.Term {
		t.Fatalf("version %d, ours was %d; %+v", stat.Version, ours.Version, n.claim)
	}
	if beat := a.mustBeat(); !beat.Lost {
		t.Errorf("%+v", beat)
	}
	l.disjoint()
}

// Most voters agreed with a node's clock, and then that clock was set back an hour. The earlier
// agreement does not count any more. The lease has ended by the leader's clock, though it still
// runs by the node's.
func TestEarlierAgreementDoesNotExtendALease(t *testing.T) {
	l := newLab(t, 1)
	a := l.node("A")
	a.agreed = true
	a.must(a.register())
	a.confirm()
	l.pass(time.Second)
	a.mustBeat()
	a.agreed = false // no vote since then
	a.skew = -millis(time.Hour)
	a.mustBeat()
	a.sess.Partition()
	a.sess.Expire()
	l.now = l.slot(0).LeaseUntil + l.cluster().graceMs()
	b := l.serving("B")
	l.remove(slotPath(0))
	a.sess.Heal()
	_, err := a.beat()
	wantFenced(t, err)
	if beat := b.mustBeat(); !beat.Lost {
		t.Errorf("%+v", beat)
	}
	l.disjoint()
}

// A's lease has ended by the leader's clock, and B has taken the slot. Then B is killed, and
// ZooKeeper is put back to a copy from before B. By A's own clock, which is behind, A's lease
// still runs. A must go on above all that B may have issued.
func TestSlowClockGoesOnAboveALostHolder(t *testing.T) {
	for name, tc := range map[string]struct {
		skew   time.Duration
		agreed bool
		epoch  uint32
		again  func(a *member)
	}{
		"seconds, ensemble":      {skew: -4 * time.Second, agreed: true, epoch: 1},
		"seconds, started alone": {skew: -4 * time.Second, agreed: true, epoch: 1, again: (*member).restartAlone},
		"outvoted":               {skew: -20 * time.Second},
		"outvoted, ensemble":     {skew: -20 * time.Second, epoch: 1},
		"outvoted, alone":        {skew: -20 * time.Second, again: (*member).restartAlone},
	} {
		t.Run(name, func(t *testing.T) {
			l := newEnsembleLab(t, 1, tc.epoch)
			l.confirmIn(time.Second)
			l.leases(12 * time.Second) // so the grace time is 1 s, less than the clocks differ
			l.pass(time.Minute)
			a := l.serving("A")
			copied := l.mem.Snapshot()
			a.skew, a.agreed = millis(tc.skew), tc.agreed
			b := a.succeededBy("B")
			reached := b.t.issued
			l.putBack(copied)
			if tc.epoch > 0 {
				l.mem.SetEpoch(tc.epoch + 1)
			}
			b.crash()
			if a.sess.Heal(); tc.again != nil {
				tc.again(a)
			}
			if !a.claim.leased(a.clock()) {
				t.Fatalf("by A's clock, %d, its lease is over at %d", a.clock(), a.claim.LeaseUntil)
			}
			if beat := a.mustBeat(); beat.Confirmed || beat.Wait != time.Second {
				t.Fatalf("%+v", beat)
			}
			had := a.t
			for end := l.now + millis(time.Minute); (a.t == had || a.t.first == 0) && l.now < end; l.pass(time.Second) {
				a.mustBeat()
				a.issue()
			}
			if had.issued > reached || a.t == had || a.t.first <= reached {
				t.Errorf("B issued up to %d, A %+v, then %+v", reached, had, a.t)
			}
		})
	}
}

// As in TestSlowClockGoesOnAboveALostHolder, but A's lease has run out once before, and A has
// confirmed again. Then A's clock goes back, so that by this clock the earlier confirming time
// is not over.
func TestForgottenHolderAfterALapse(t *testing.T) {
	l := newEnsembleLab(t, 1, 1)
	l.confirmIn(time.Second)
	l.leases(12 * time.Second) // so the grace time is 1 s, less than the clocks differ
	a := l.serving("A")
	a.wait = 1500 * time.Millisecond
	l.pass(labLease)
	if beat := a.mustBeat(); beat.Confirmed {
		t.Fatalf("%+v", beat)
	}
	l.pass(time.Second)
	if beat := a.mustBeat(); !beat.Confirmed || !a.issue() {
		t.Fatalf("%+v", beat)
	}
	copied := l.mem.Snapshot()
	a.skew, a.agreed = -millis(4*time.Second), true
	b := a.succeededBy("B")
	reached := b.t.issued
	l.putBack(copied)
	l.mem.SetEpoch(2)
	b.crash()
	a.sess.Heal()
	if beat := a.mustBeat(); beat.Confirmed {
		t.Fatalf("%+v", beat)
	}
	had := a.t
	for end := l.now + millis(time.Minute); (a.t == had || a.t.first == 0) && l.now < end; l.pass(100 * time.Millisecond) {
		a.mustBeat()
		a.issue()
	}
	if had.issued > reached || a.t == had || a.t.first <= reached {
		t.Errorf("B issued up to %d, A %+v, then %+v", reached, had, a.t)
	}
}

// As in TestSlowClockGoesOnAboveALostHolder, but B still runs and notices the loss. It
// cannot save the claim that would put its record back. B's freeze alone must keep A from
// confirming.
func TestForgottenHolderWhoseDiskFails(t *testing.T) {
	l := newLab(t, 1)
	l.confirmIn(time.Second)
	l.leases(12 * time.Second) // so the grace time is 1 s, less than the clocks differ
	a := l.serving("A")
	copied := l.mem.Snapshot()
	a.skew, a.agreed = -millis(4*time.Second), true
	b := a.succeededBy("B")
	l.putBack(copied)
	a.sess.Heal()
	if beat := a.mustBeat(); beat.Confirmed || beat.Wait != time.Second {
		t.Fatalf("%+v", beat)
	}
	b.disk.err = errors.New("read-only")
	if _, err := b.beat(); err == nil {
		t.Fatal("put back without a record of its own")
	}
	l.pass(time.Second)
	for range 5 {
		if beat := a.mustBeat(); beat.Confirmed {
			t.Fatalf("A confirms: %+v", beat)
		}
		l.pass(time.Second)
	}
	b.disk.err = nil
	if beat := b.mustBeat(); !beat.Lost || !b.issue() {
		t.Errorf("%+v", beat)
	}
	_, err := a.beat()
	wantFenced(t, err)
	l.disjoint()
}

func (m *member) restartAlone() {
	m.crash()
	m.startAlone()
}

func (m *member) restart() {
	m.Helper()
	m.crash()
	m.must(m.start())
}

// loseAnswer sends a heartbeat whose write is applied but not acknowledged.
func (m *member) loseAnswer() {
	m.Helper()
	m.hook = faulty(zkstore.FailAfter, 0, 1, touching("set", slotPath(m.claim.Worker)))
	defer func() { m.hook = nil }()
	if _, err := m.beat(); err == nil {
		m.Fatal("acknowledged")
	}
}

// As in TestSlowClockGoesOnAboveALostHolder, but A's first write after the loss is not
// acknowledged, or A is restarted. A then finds a record of the new leader epoch with a bound
// that is ahead. That record does not show that the lease had ended.
func TestForgottenHolderAndAWriteBefore(t *testing.T) {
	for name, again := range map[string][]func(a *member){
		"answer lost":               {(*member).loseAnswer},
		"answers lost":              {(*member).loseAnswer, (*member).loseAnswer},
		"alone, answer lost":        {(*member).restartAlone, (*member).loseAnswer},
		"answer lost, alone":        {(*member).loseAnswer, (*member).restartAlone},
		"resumed":                   {(*member).restart},
		"answer lost, resumed":      {(*member).loseAnswer, (*member).restart},
		"resumed, killed, resumed":  {(*member).restart, (*member).restart},
		"resumed, its answer lost":  {(*member).restart, (*member).loseAnswer},
		"alone, then resumed":       {(*member).restartAlone, (*member).restart},
		"alone, reported, resumed":  {(*member).restartAlone, func(a *member) { a.mustBeat() }, (*member).restart},
		"reported, then alone":      {func(a *member) { a.mustBeat() }, (*member).restartAlone},
		"reported, an answer lost":  {func(a *member) { a.mustBeat() }, (*member).loseAnswer},
		"resumed, reported, killed": {(*member).restart, func(a *member) { a.mustBeat() }, (*member).restart},
	} {
		for _, epoch := range []uint32{0, 1} {
			t.Run(fmt.Sprintf("%s, epoch %d", name, epoch), func(t *testing.T) {
				l := newEnsembleLab(t, 1, epoch)
				l.confirmIn(time.Second)
				l.leases(12 * time.Second) // so the grace time is 1 s, less than the clocks differ
				l.pass(time.Minute)
				a := l.serving("A")
				copied := l.mem.Snapshot()
				a.skew, a.agreed = -4000, true
				b := a.succeededBy("B")
				first, last := b.t.first, b.t.issued
				l.putBack(copied)
				if epoch > 0 {
					l.mem.SetEpoch(epoch + 1)
				}
				b.crash()
				a.sess.Heal()
				for _, step := range again {
					step(a)
				}
				for end := l.now + millis(30*time.Second); l.now < end; l.pass(500 * time.Millisecond) {
					a.mustBeat()
					if a.issue() && a.t.issued >= first && a.t.issued <= last {
						t.Fatalf("B issued %d to %d, A %d", first, last, a.t.issued)
					}
				}
				if a.t.issued <= last {
					t.Errorf("serves nothing: %+v, %+v", a.claim, a.t)
				}
			})
		}
	}
}

// The leader's clock is an hour ahead, and then half a minute, and no peer shows that it is
// wrong. When it is right again, the holder serves at the present time, not an hour later.
func TestLeaderThatIsAheadForAWhile(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	leader := func(ahead time.Duration) {
		l.now += a.skew + millis(ahead)
		a.skew = -millis(ahead)
		a.agreed = ahead == 0
	}
	rounds := func(n int) {
		for range n {
			l.pass(DefaultHeartbeat)
			a.mustBeat()
			a.issue()
		}
	}
	leader(0)
	rounds(1)
	leader(time.Hour)
	if beat := a.mustBeat(); beat.Confirmed {
		t.Fatalf("%+v", beat)
	}
	leader(30 * time.Second)
	rounds(10)
	leader(0)
	rounds(5)
	if a.t.issued != a.clock() {
		t.Errorf("at %d: %+v, %+v", a.clock(), a.claim, a.t)
	}
}

// The leader's clock leaps an hour ahead. If the leader epoch is the same as before, nothing
// was lost, and the node stays confirmed. If there is another epoch, the lease is doubted.
func TestLeaderLeapRaisesNoDoubtInOneEpoch(t *testing.T) {
	for _, tc := range []struct {
		epoch     uint32 // after the leap, 1 before
		confirmed bool
	}{{1, true}, {2, false}} {
		l := newEnsembleLab(t, 1, 1)
		a := l.serving("A")
		a.agreed = true
		l.pass(time.Hour)
		a.skew = -millis(time.Hour)
		a.claim.LeaseUntil = a.clock() + millis(labLease)
		l.put(0, Slot{
			Node: a.claim.Node, Ticket: a.claim.Ticket, Term: a.claim.Term, Nonce: a.claim.Nonce,
			LeaseUntil: a.claim.LeaseUntil, Generation: a.disk.generation, Confirmed: true,
		})
		l.mem.SetEpoch(tc.epoch)
		if beat := a.mustBeat(); beat.Confirmed != tc.confirmed {
			t.Errorf("epoch %d: %+v", tc.epoch, beat)
		}
	}
}

// The leader's time of a write shows that the lease had run out, but the write is not
// acknowledged. The bound found next is that of the write. The node must still confirm again.
func TestLapseIsNoticedAfterALostAnswer(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	copied := l.mem.Snapshot()
	a.skew = -millis(20 * time.Second)
	b := a.succeededBy("B")
	l.putBack(copied)
	a.sess.Heal()
	a.hook = faulty(zkstore.FailAfter, 0, 1, touching("set", slotPath(0)))
	if _, err := a.beat(); err == nil {
		t.Fatal("acknowledged")
	}
	a.hook = nil
	if beat := a.mustBeat(); beat.Confirmed || beat.Wait != labConfirm {
		t.Errorf("%+v", beat)
	}
	l.pass(time.Second)
	if beat := b.mustBeat(); !beat.Lost || !b.issue() {
		t.Errorf("%+v", beat)
	}
	l.disjoint()
}

// The cluster has no confirming time. If the leader's clock leaps ahead by more than the lease, a
// heartbeat must not repeat its write for ever.
func TestLeaderLeapDoesNotLoopAHeartbeat(t *testing.T) {
	l := newLab(t, 1)
	l.confirmIn(0)
	a := l.serving("A")
	l.pass(time.Hour)
	a.skew = millis(time.Second - time.Hour)
	if beat := a.mustBeat(); !beat.Confirmed || !a.issue() {
		t.Errorf("%+v", beat)
	}
}

// A freeze lasts for at least the longest lease by the leader's clock, whichever clock is
// behind.
func TestFreezeByASlowClock(t *testing.T) {
	for _, skew := range []time.Duration{-30 * time.Second, 4 * time.Second} {
		l := newLab(t, 2)
		a := l.serving("A")
		b := l.serving("B")
		b.wait = labW
		b.mustBeat()
		a.skew = millis(skew)
		l.pass(time.Second)
		b.sess.Partition()
		l.remove(slotPath(0))
		if beat := a.mustBeat(); !beat.Lost {
			t.Fatalf("%+v", beat)
		}
		if until, least := l.cluster().FrozenUntil, l.now+millis(labW); until < least {
			t.Errorf("%s: frozen until %d, leases of now last until %d", skew, until, least)
		}
	}
}

// A node creates a ticket to put its record back. The ticket is in the new record, or it is
// deleted if the node is fenced.
func TestReassertLeavesNoTicket(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(l *lab)
		fenced    bool
	}{
		"another was faster, not confirmed": {func(l *lab) { l.takeOver(0, 2, false) }, false},
		"another was faster":                {func(l *lab) { l.takeOver(0, 2, true) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			l.wipe()
			done := false
			a.hook = func(c zkstore.Call) zkstore.Fault {
				if !done && c.Op == "create" && c.Path == slotPath(0) {
					done = true
					tc.meanwhile(l)
				}
				return zkstore.NoFault
			}
			_, err := a.beat()
			if !done {
				t.Fatal("no record was put back")
			}
			want := []string{path.Base(a.claim.Ticket)}
			if tc.fenced {
				wantFenced(t, err)
				want = nil
			} else if err != nil {
				t.Error(err)
			}
			if got := l.children(ticketsPath); !slices.Equal(got, want) {
				t.Errorf("tickets %q, want %q", got, want)
			}
		})
	}
}
