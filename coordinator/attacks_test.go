package coordinator

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// The tests in this file play sequences of events that must not lead to duplicate IDs, nor freeze registration without
// need.

// A node is down while ZooKeeper loses data. When it starts again, another holder has noticed the loss, and the freeze
// is over. The node must serve, and must not freeze registration again.
func TestResumeAfterTheFreezeDoesNotFreezeAgain(t *testing.T) {
	l := newLab(t, 8)
	a, n := l.serving("A"), l.serving("N")
	n.wait = time.Second
	copied := l.Mem.Snapshot()
	n.wait = labLease
	l.serve(2 * time.Minute)
	n.crash()
	l.putBack(copied)
	a.mustBeat()
	frozen := l.cluster()
	if !frozen.Frozen(l.now) {
		t.Fatalf("%+v", frozen)
	}
	for l.now < frozen.FrozenUntil+millis(time.Hour) {
		l.pass(30 * time.Second)
		a.mustBeat()
	}
	n.must(n.start())
	if cl := l.cluster(); cl.Frozen(l.now) {
		t.Errorf("frozen again: %+v", cl)
	}
	serves := false
	for end := l.now + millis(time.Minute); l.now < end && !serves; l.pass(3 * time.Second) {
		n.mustBeat()
		serves = n.issue()
	}
	if !serves {
		t.Error("it does not serve within a minute")
	}
	l.disjoint()
}

// A new cluster was created in the place of a lost one, and is lost in turn. Its only node has not confirmed and must
// not recreate it, because a holder of the first cluster may come back.
func TestUnconfirmedNodeDoesNotRecreateTheCluster(t *testing.T) {
	for name, ends := range map[string]func(*member) error{
		"heartbeat": func(n *member) error { _, _ = n.beat(); return nil },
		"stop":      (*member).halt,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 8)
			a := l.serving("A")
			a.sess.Partition()
			l.wipe()
			l.init(Cluster{UUID: "cluster-2", Layout: "test", Slots: 8, LeaseMs: millis(labW),
				ConfirmMs: millis(labConfirm)})
			n := l.node("N")
			n.disk.cl = l.cluster()
			n.co.Join(n.disk.cl)
			n.must(n.register())
			l.wipe()
			l.pass(time.Second)
			n.must(ends(n))
			if cl, err := ReadCluster(t.Context(), l.admin); !errors.Is(err, ErrNoCluster) {
				t.Errorf("the newcomer made %+v, %v", cl, err)
			}
			a.sess.Heal()
			if beat := a.mustBeat(); !beat.Restored || !a.issue() {
				t.Errorf("%+v", beat)
			}
			if cl := l.cluster(); cl.UUID != "cluster-1" || !cl.InUse {
				t.Errorf("%+v", cl)
			}
		})
	}
}

// The lease of a holder has ended, and its clock is a minute behind the leader's. The holder freezes registration after
// a loss. The freeze must not end before the lease of another holder, which is cut off.
func TestFreezeByASlowClockCoversOtherLeases(t *testing.T) {
	for name, ends := range map[string]func(*member){
		"heartbeat": func(a *member) {
			_, err := a.beat()
			wantFenced(a, err)
		},
		"stop": func(a *member) { a.must(a.halt()) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			l.leases(10 * time.Minute)
			a := l.serving("A")
			a.SetSkew(-time.Minute)
			a.mustBeat()
			copied := l.Mem.Snapshot()
			l.pass(3 * time.Second)
			a.mustBeat()
			c := l.serving("C")
			c.wait = 10 * time.Minute
			a.sess.Partition()
			a.sess.Expire()
			for end := l.now + millis(3*time.Minute); l.now < end; l.pass(3 * time.Second) {
				c.mustBeat()
			}
			c.mustBeat()
			c.sess.Partition()
			l.putBack(copied)
			a.sess.Heal()
			ends(a)
			if cl := l.cluster(); cl.FrozenUntil < c.claim.LeaseUntil {
				t.Errorf("the freeze ends %d ms before a lease", c.claim.LeaseUntil-cl.FrozenUntil)
			}
		})
	}
}

// slowHolder returns a lab with a holder, whose clock is a minute behind the leader's, and whose record was lost after
// its last heartbeat.
func slowHolder(t *testing.T) (*lab, *member) {
	l := newLab(t, 2)
	l.leases(10 * time.Minute)
	a := l.serving("A")
	a.SetSkew(-time.Minute)
	a.mustBeat()
	l.pass(3 * time.Second)
	a.mustBeat()
	l.remove(SlotPath(0))
	return l, a
}

// A holder finds a freeze that came back with older data. The freeze outlasts all leases by the holder's clock, which
// is behind. If it does not by the leader's, the holder must make it longer.
func TestFoundFreezeIsLongByTheLeadersClock(t *testing.T) {
	for _, left := range []int64{0, -1} {
		l, a := slowHolder(t)
		gap := 40 * time.Second
		until := l.cl.FreezeEnd(l.now+millis(gap)) + left
		if err := updateCluster(t.Context(), l.admin, func(cl *Cluster) bool {
			cl.Incarnation, cl.FrozenUntil = l.now, until
			return true
		}); err != nil {
			t.Fatal(err)
		}
		l.forget()
		l.pass(gap)
		a.mustBeat()
		if cl := l.cluster(); left == 0 && cl.FrozenUntil != until || left < 0 && cl.FrozenUntil <= until {
			t.Errorf("%d ms: the freeze ends at %d, which was %d", left, cl.FrozenUntil, until)
		}
	}
}

// A holder freezes registration after a loss, by its clock, which is behind. If the freeze is too short by the leader's
// clock, the holder must write it again.
func TestOwnFreezeIsLongByTheLeadersClock(t *testing.T) {
	enough := 10*time.Minute/64 + labConfirm*5/2 // by so much the freeze is longer than any lease
	for gap, raised := range map[time.Duration]int64{enough: 1, enough + time.Millisecond: 2} {
		l, a := slowHolder(t)
		from := l.now // the leader's time that the holder has seen last
		l.pass(gap)
		a.mustBeat()
		if raised == 2 {
			from = l.now
		}
		if cl := l.cluster(); cl.Incarnation != raised || cl.FrozenUntil != l.cl.nextHorizon(from) {
			t.Errorf("after %s: incarnation %d, frozen for %d ms more, want %d and %d", gap, cl.Incarnation,
				cl.FrozenUntil-from, raised, l.cl.nextHorizon(from)-from)
		}
	}
}

// An operator takes a slot from its holder. The holder is fenced even if the record has a later incarnation than its
// claim. That happens if its last write was applied but not acknowledged.
func TestReleaseFencesWhateverTheIncarnation(t *testing.T) {
	l := newLab(t, 4)
	a, b := l.serving("A"), l.serving("B")
	b.wait = time.Hour
	b.mustBeat()
	l.remove(SlotPath(0))
	a.mustBeat()
	if _, err := Thaw(t.Context(), l.admin, l.cluster()); err != nil {
		t.Fatal(err)
	}
	b.hook = faulty(memzk.FailAfter, 0, 1, touching("set", SlotPath(1)))
	if _, err := b.beat(); err == nil {
		t.Fatal("its write was acknowledged")
	}
	b.hook = nil
	l.takeAway(1)
	_, err := b.beat()
	wantFenced(t, err)
	if cl := l.cluster(); cl.Frozen(l.now) {
		t.Errorf("%+v", cl)
	}
}

// A holder that finds a loss writes the freeze within limits.FreezeCalls calls. docs/design.md counts on that (C12).
func TestFreezeTakesFewCalls(t *testing.T) {
	for name, lose := range map[string]func(l *lab, copied *memzk.Snapshot){
		"an older copy":       (*lab).putBack,
		"its record":          func(l *lab, _ *memzk.Snapshot) { l.remove(SlotPath(0)) },
		"the cluster's":       func(l *lab, _ *memzk.Snapshot) { l.remove(clusterPath) },
		"a newcomer's record": func(l *lab, _ *memzk.Snapshot) { l.remove(SlotPath(0)); l.takeOver(0, 0, false) },
		"a newcomer's cluster": func(l *lab, _ *memzk.Snapshot) {
			l.wipe()
			l.init(Cluster{UUID: "other", Slots: 2, LeaseMs: l.cl.LeaseMs, ConfirmMs: l.cl.ConfirmMs})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			copied := l.Mem.Snapshot()
			l.pass(3 * time.Second)
			a.mustBeat()
			lose(l, copied)
			calls, frozen := 0, 0
			a.hook = func(c memzk.Call) memzk.Fault {
				if !c.More {
					calls++
				}
				if frozen == 0 && c.Write() && c.Path == clusterPath {
					frozen = calls
				}
				return memzk.NoFault
			}
			a.mustBeat()
			if frozen == 0 || frozen > limits.FreezeCalls || !l.cluster().Frozen(l.now) {
				t.Errorf("frozen after %d calls, want 1 to %d: %+v", frozen, limits.FreezeCalls, l.cluster())
			}
		})
	}
}

// Stopped nodes have no vote. A stopped node wrote its record later than it read its clock, so the clock would look as
// if it were behind.
func TestStoppedNodesHaveNoVote(t *testing.T) {
	l := newLab(t, 64)
	for range 20 {
		l.serving("N")
	}
	for range 2 { // the leases of the first ones had run out: they confirm again
		l.pass(labConfirm)
		for _, m := range l.nodes {
			m.mustBeat()
		}
	}
	heard := func() (readings []Reading) {
		t.Helper()
		a := l.nodes[0]
		readings, err := a.co.ReadPeerClocks(t.Context(), a.claim.Worker, a.mustBeat())
		a.must(err)
		return readings
	}
	if n := len(heard()); n != maxSample {
		t.Fatalf("hears %d", n)
	}
	l.pass(2 * limits.DefaultHeartbeat)
	for _, m := range l.nodes[3:] {
		m.must(m.halt())
	}
	for range 5 {
		for _, r := range heard() {
			if r.ahead() < 0 {
				t.Fatalf("a stopped node votes: %+v", r)
			}
		}
		l.nodes[1].mustBeat()
		l.nodes[2].mustBeat()
	}
	if n := len(heard()); n != 2 {
		t.Errorf("hears %d of the two that are left", n)
	}
}

// A clean stop finds an older copy of its record, and the write of the freeze fails once. Stop must try again before it
// marks the slot as stopped, because that write hides the loss.
func TestStopRetriesAFreezeThatFailed(t *testing.T) {
	l := newLab(t, 2)
	a, cut := l.serving("A"), l.serving("B")
	copied := l.Mem.Snapshot()
	cut.wait = labW
	l.serve(2 * time.Minute)
	cut.sess.Partition()
	l.putBack(copied)
	a.hook = faulty(memzk.FailBefore, 0, 1, touching("set", clusterPath))
	err := a.halt()
	if cl := l.cluster(); err != nil || !cl.Frozen(l.now) || !l.slot(0).Stopped {
		t.Errorf("%+v, %v", cl, err)
	}
}

// A machine is cloned while its node serves, and both go on. Each finds a record with its own node, term and nonce. The
// one that finds what the other has written must stop, and leave the worker to the other (C33).
func TestCloneOfAProcessIsFenced(t *testing.T) {
	l := newLab(t, 8)
	a, clone := l.serving("A"), l.node("clone")
	memory := *a.co.holder
	clone.co.holder = &memory
	heartbeat := func(m *member) error {
		_, err := m.co.Heartbeat(t.Context(), Report{Lease: labLease, Generation: memory.Generation})
		return err
	}
	l.pass(time.Second)
	if err := heartbeat(clone); err != nil {
		t.Fatalf("the first heartbeat of a clone: %v", err)
	}
	l.pass(time.Second)
	fenced, ok := errors.AsType[*FencedError](heartbeat(a))
	if !ok || !fenced.Cloned || fenced.Lost {
		t.Fatalf("%+v", fenced)
	}
	for range 3 {
		l.pass(time.Second)
		if err := heartbeat(clone); err != nil {
			t.Fatalf("the process that goes on: %v", err)
		}
	}
	if cl := l.cluster(); cl.Frozen(l.now) {
		t.Error("registration is frozen")
	}
}

// A write whose answer was lost is no other process's (C33).
func TestUnknownWriteIsNoClone(t *testing.T) {
	l := newLab(t, 8)
	a := l.serving("A")
	for range 3 {
		l.pass(time.Second)
		a.hook = func(c memzk.Call) memzk.Fault {
			if c.Write() {
				return memzk.FailAfter
			}
			return memzk.NoFault
		}
		_, _ = a.beat()
		a.hook = nil
		a.mustBeat()
	}
}
