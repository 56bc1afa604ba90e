package coordinator

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// The tests in this file show how holders and new nodes behave when ZooKeeper has lost data.

// wipe deletes all data and sessions, as if the server were a new one.
func (l *lab) wipe() {
	l.Mem.Wipe()
	l.forget()
}

// takeOver writes a record of another node into a slot, with the given term, and returns it. An operator has taken the
// slot from its holder before.
func (l *lab) takeOver(worker int, term int64, confirmed bool) Slot {
	l.Helper()
	s := Slot{Node: "other", Term: term, Nonce: "others", LeaseUntil: l.now + millis(labLease), Confirmed: confirmed,
		History: l.taken(worker)}
	l.put(worker, s)
	return s
}

// taken returns the history of a slot that an operator has just taken from its holder. It is empty if the slot has no
// record.
func (l *lab) taken(worker int) (h History) {
	if data, _, err := l.admin.Get(l.Context(), SlotPath(worker)); err == nil {
		h = History{{Node: parseSlot(data).Node, Term: 1, Ended: EndedTaken}}
	}
	return h
}

func (l *lab) putBack(copied *memzk.Snapshot) {
	l.Mem.Restore(copied)
	l.Mem.ExpireOrphans()
	l.forget()
}

// losses are the ways to lose data, and what looks like a loss.
var losses = map[string]func(l *lab){
	"wiped":                          (*lab).wipe,
	"restored from an older copy":    func(l *lab) { l.putBack(l.copied) },
	"restored from before they came": func(l *lab) { l.putBack(l.empty) },
	"slots deleted":                  func(l *lab) { l.remove(SlotPath(0)); l.remove(SlotPath(1)) },
	"cluster deleted":                func(l *lab) { l.remove(clusterPath) },
	"another, not confirmed": func(l *lab) {
		l.wipe()
		l.init(Cluster{UUID: "new", Slots: 2, LeaseMs: l.cl.LeaseMs, ConfirmMs: l.cl.ConfirmMs})
	},
	"slots held by others, not confirmed": func(l *lab) {
		l.put(0, Slot{Node: "x", Nonce: "x", Term: 1, LeaseUntil: l.now + 1})
		l.put(1, Slot{Node: "x", Nonce: "x", Term: 1, LeaseUntil: l.now + millis(labW)})
		l.forget()
	},
}

// After a loss of data, holders put their records back and go on issuing. No other node gets their slots.
func TestHoldersReassert(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			l.empty = l.Mem.Snapshot()
			a, b := l.serving("A"), l.serving("B")
			l.serve(time.Minute)
			l.copied = l.Mem.Snapshot()
			l.serve(time.Minute)
			was := map[*member]Claim{a: a.claim, b: b.claim}
			lose(l)
			l.pass(time.Second)
			for _, m := range []*member{a, b} {
				beat := m.mustBeat()
				s := l.slot(m.claim.Worker)
				lost := name != "cluster deleted" || m == a // A has put it back
				if beat.Restored != lost && name != "another, not confirmed" || !m.issue() ||
					s.Nonce != m.claim.Nonce || s.LeaseUntil < was[m].LeaseUntil || !s.Confirmed {
					t.Errorf("%s: %+v, slot %+v", m.name, beat, s)
				}
				if beat.Restored && (m.claim.Term <= was[m].Term || m.claim.Nonce == was[m].Nonce ||
					m.claim.Floor != was[m].Floor) {
					t.Errorf("%s: %+v after %+v", m.name, m.claim, was[m])
				}
			}
			cl := l.cluster()
			if cl.UUID != l.cl.UUID || !cl.InUse || cl.HighestSlot != 1 || cl.Incarnation == 0 ||
				cl.FrozenUntil < l.now+millis(labW) {
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

// Resume, Register and Thaw create nothing if /cluster is missing.
func TestNobodyElseMakesACluster(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	a.crash()
	l.wipe()
	for what, f := range map[string]func() error{
		"resume":   a.resume,
		"register": func() error { return l.node("B").register() },
		"thaw":     func() error { _, err := Thaw(t.Context(), l.admin, l.cl); return err },
	} {
		if err := f(); !errors.Is(err, ErrNoCluster) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := l.admin.Get(t.Context(), "/"); !errors.Is(err, store.ErrNoNode) {
		t.Error("something was made")
	}
}

// A's lease has ended by the leader's clock, and B has taken the slot. Then B is killed, and ZooKeeper is put back to a
// copy from before B. By A's own clock, which is behind, A's lease still runs. A must go on above all that B may have
// issued.
func TestSlowClockGoesOnAboveALostHolder(t *testing.T) {
	for name, tc := range map[string]struct {
		skew   time.Duration
		agreed bool
		again  func(a *member)
	}{
		"seconds":                {skew: -4 * time.Second, agreed: true},
		"seconds, started alone": {skew: -4 * time.Second, agreed: true, again: (*member).restartAlone},
		"outvoted":               {skew: -20 * time.Second},
		"outvoted, alone":        {skew: -20 * time.Second, again: (*member).restartAlone},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			l.confirmIn(time.Second)
			l.leases(24 * time.Second) // so the grace time is 2 s, less than the clocks differ
			l.pass(time.Minute)
			a := l.serving("A")
			a.wait = 24 * time.Second
			copied := l.Mem.Snapshot()
			a.SetSkew(tc.skew)
			a.agreed = tc.agreed
			b := a.succeededBy("B")
			reached := b.t.issued
			l.putBack(copied)
			b.crash()
			if a.sess.Heal(); tc.again != nil {
				tc.again(a)
			}
			if a.clock() >= a.claim.LeaseUntil {
				t.Fatalf("by A's clock, %d, its lease is over at %d", a.clock(), a.claim.LeaseUntil)
			}
			if beat := a.mustBeat(); beat.Confirmed || beat.wait != time.Second {
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

// ZooKeeper has lost all data while A's lease runs by A's own clock. By the leader's clock it has ended, so another
// node may have held the worker. In the second case the leader's clock was ahead, and has been set right since.
func TestSlowClockPutsNothingBack(t *testing.T) {
	for _, right := range []bool{false, true} {
		t.Run(fmt.Sprint("set right ", right), func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			ahead := time.Duration(a.claim.LeaseUntil+1-l.now) * time.Millisecond
			if l.Leap(ahead); right {
				if a.mustBeat().Confirmed {
					t.Fatal("confirmed at once")
				}
				l.Leap(-ahead)
			}
			l.wipe()
			_, err := a.beat()
			wantFenced(t, err)
		})
	}
}

// failsOnce makes the node's next creation of its record fail.
func (m *member) failsOnce(f memzk.Fault) {
	m.hook = faulty(f, 0, 1, touching("create", SlotPath(m.claim.Worker)))
}

// The leader's clock is an hour ahead, and most clocks are not. ZooKeeper loses A's record, and the write that puts it
// back fails. The next heartbeat still knows that most agree with A's clock, so A serves on.
func TestFailedRestoreKeepsTheAgreement(t *testing.T) {
	for name, f := range map[string]memzk.Fault{"request lost": memzk.FailBefore, "answer lost": memzk.FailAfter} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a, b := l.serving("A"), l.serving("B")
			l.Leap(time.Hour)
			a.agreed, b.agreed = true, true
			l.serve(labConfirm + 9*time.Second)
			l.pass(time.Second)
			l.remove(SlotPath(a.claim.Worker))
			a.failsOnce(f)
			if _, err := a.beat(); !errors.Is(err, store.ErrUnreachable) {
				t.Fatal(err)
			}
			l.pass(time.Second)
			if beat := a.mustBeat(); !beat.Confirmed || !a.issue() {
				t.Errorf("%+v", beat)
			}
		})
	}
}

// The leader's clock is a minute behind. All clocks of A's machine stand still for 40 s. Then A cannot put its lost
// record back, and is cut off. Under a leader whose clock is right, N takes the worker when A's lease has ended.
// ZooKeeper loses N's record, N is gone, and the first leader comes back. By its clock and A's, the lease of A still
// runs. How far A's clock was ahead at its last heartbeat shows that it has ended.
func TestFailedRestoreKeepsTheReading(t *testing.T) {
	l := newLab(t, 1)
	l.Leap(-time.Minute)
	a := l.serving("A")
	l.serve(9 * time.Second)
	copied := l.Mem.Snapshot()
	a.Pause(40*time.Second, true)
	l.pass(40 * time.Second)
	l.remove(SlotPath(0))
	a.failsOnce(memzk.FailBefore)
	if _, err := a.beat(); !errors.Is(err, store.ErrUnreachable) {
		t.Fatal(err)
	}
	a.up = false // the others go on without it
	l.putBack(copied)
	l.Leap(time.Minute)
	n := a.succeededBy("N")
	l.serve(15 * time.Second)
	n.crash()
	l.putBack(copied)
	l.Leap(-time.Minute)
	a.sess.Heal()
	a.up = true
	_, err := a.beat()
	wantFenced(t, err)
	l.disjoint()
}

func (m *member) restartAlone() {
	m.crash()
	m.startAlone()
}

// The cluster has no confirming time. If the leader's clock leaps ahead by more than the lease, a heartbeat must not
// repeat its write for ever.
func TestLeaderLeapDoesNotLoopAHeartbeat(t *testing.T) {
	l := newLab(t, 1)
	l.confirmIn(0)
	a := l.serving("A")
	l.pass(time.Second)
	l.Leap(time.Hour - time.Second)
	if beat := a.mustBeat(); !beat.Confirmed || !a.issue() {
		t.Errorf("%+v", beat)
	}
}

// A is cut off, and C takes its worker when the lease has ended. Then ZooKeeper loses C's record, C is gone, and both
// A's clock and the leader's are set back. By both, A's lease still runs. The boot clock shows that it has ended.
func TestLeaseEndsByTheBootClock(t *testing.T) {
	l := newLab(t, 2)
	a, w := l.serving("A"), l.serving("W")
	for range 3 {
		l.pass(limits.DefaultHeartbeat)
		a.mustBeat()
		w.mustBeat()
	}
	a.extend()
	a.sess.Partition()
	a.sess.Expire()
	for l.now < a.claim.LeaseUntil+l.cl.graceMs() {
		l.pass(limits.DefaultHeartbeat)
		w.mustBeat()
	}
	copied := l.Mem.Snapshot()
	c := l.serving("C")
	if c.claim.Worker != a.claim.Worker {
		t.Fatalf("C has worker %d", c.claim.Worker)
	}
	for range 5 {
		l.pass(limits.DefaultHeartbeat)
		w.mustBeat()
		c.mustBeat()
		c.issue()
	}
	c.crash()
	l.putBack(copied)
	back := time.Minute
	l.Leap(-back)
	a.Step(-back)
	if a.clock() >= a.claim.LeaseUntil {
		t.Fatal("A's clock is not back")
	}
	w.mustBeat() // it notices
	a.sess.Heal()
	for range 40 {
		l.pass(limits.DefaultHeartbeat)
		if a.up {
			_, _ = a.beat()
		}
		if a.up {
			a.extend()
			a.issue()
		}
		w.mustBeat()
	}
	l.disjoint()
}

// takenAfterALoss returns a holder whose lease runs. ZooKeeper has been put back to a copy from before it acquired its
// worker, and another node has confirmed that worker since.
func takenAfterALoss(t *testing.T) (*lab, *member) {
	t.Helper()
	l := newLab(t, 8)
	copied := l.Mem.Snapshot()
	a := l.serving("A")
	a.wait = labW
	for range 9 {
		a.mustBeat()
	}
	a.sess.Partition()
	l.putBack(copied)
	if n := l.serving("N"); n.claim.Worker != a.claim.Worker {
		t.Fatal(n.claim)
	}
	a.sess.Heal()
	return l, a
}

// A holder is fenced, because another node has confirmed its worker since ZooKeeper lost data. It freezes registration,
// also when it stops: other holders may be cut off.
func TestStopFreezesWhereAnotherHasConfirmed(t *testing.T) {
	for name, end := range map[string]func(*member){
		"heartbeat": func(a *member) { _, err := a.beat(); wantFenced(a, err) },
		"stop":      func(a *member) { a.must(a.halt()) },
		"release":   func(a *member) { a.must(a.leave()) },
	} {
		t.Run(name, func(t *testing.T) {
			l, a := takenAfterALoss(t)
			end(a)
			if cl := l.cluster(); !cl.Frozen(l.now) {
				t.Errorf("not frozen: %+v", cl)
			}
		})
	}
}

// A's lease expires, and N1 acquires the slot and releases it. Then all clocks are set back by 8 s, and N2 acquires the
// slot. Nothing was lost, so A must not freeze registration.
func TestClockSetBackBetweenHoldersFreezesNothing(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	a.sess.Partition()
	a.sess.Expire()
	l.now = a.claim.LeaseUntil + 5000
	n1 := l.node("N1")
	n1.must(n1.start())
	n1.must(n1.leave())
	l.now -= 8000 // the clocks of all machines are corrected by 8 s
	l.forget()
	n2 := l.node("N2")
	n2.must(n2.start())
	a.sess.Heal()
	_, err := a.beat()
	wantFenced(t, err)
	if cl := l.cluster(); cl.FrozenUntil != 0 {
		t.Errorf("frozen: %+v", cl)
	}
}

// Named sequences have found a loss. The boot clock shows that the node's lease has ended, so the node counts as a
// finder without a lease (C26).
func TestLossFoundAfterTheLeaseByTheBootClock(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("a")
	ended := a.co.Claim()
	ended.BootEnd = 1
	for name, row := range map[string]struct {
		claim Claim
		lease int64
	}{"the lease runs": {a.co.Claim(), a.co.Claim().LeaseUntil}, "it has ended": {ended, 0}} {
		a.co.unannounced = nil
		a.co.AnnounceFound(7, "a record is missing", row.claim)
		want := Loss{Known: 7, MayRestoreCluster: true, LeaseUntil: row.lease, Found: "a record is missing"}
		if *a.co.unannounced != want {
			t.Errorf("%s: %+v, want %+v", name, *a.co.unannounced, want)
		}
	}
}
