package coordinator

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/internal/zkstore"
)

// newEnsembleLab returns a lab whose ZooKeeper has been in the given leader epoch since its
// cluster was created. Epoch 0 means a standalone server.
func newEnsembleLab(t *testing.T, slots int, epoch uint32) *lab {
	l := newLab(t, slots)
	l.wipe()
	l.mem.SetEpoch(epoch)
	l.init(l.cl)
	return l
}

// The confirming time is skipped if ZooKeeper has a much older record of the same leader epoch,
// because it has lost nothing since.
func TestConfirmingIsSkipped(t *testing.T) {
	steady := steadyTimes * labConfirm
	for name, tc := range map[string]struct {
		epoch  uint32 // 0 is standalone
		before func(l *lab)
		want   time.Duration
	}{
		"standalone, old":    {0, func(l *lab) { l.pass(1000 * steady) }, labConfirm},
		"a new cluster":      {1, func(l *lab) {}, labConfirm},
		"just too young":     {1, func(l *lab) { l.pass(steady - time.Millisecond) }, labConfirm},
		"old enough":         {1, func(l *lab) { l.pass(steady) }, 0},
		"another leader now": {1, func(l *lab) { l.pass(steady); l.mem.SetEpoch(2) }, labConfirm},
		"another, and /cluster written": {1, func(l *lab) {
			x := l.serving("X") // so that A does not grow /cluster
			x.must(x.leave())
			l.mem.SetEpoch(2)
			l.touch()
			l.pass(steady)
		}, 0},
		"another, and /cluster just now":    {1, func(l *lab) { l.mem.SetEpoch(2); l.pass(steady); l.touch() }, labConfirm},
		"another, and a ticket of its time": {1, func(l *lab) { l.mem.SetEpoch(2); l.drawn(1); l.pass(steady) }, 0},
		"tickets of both epochs": {1, func(l *lab) {
			l.drawn(5)
			l.mem.SetEpoch(2)
			l.drawn(7)
			l.pass(steady)
			l.drawn(3)
		}, 0},
		"tickets of its time, all young": {1, func(l *lab) {
			l.drawn(5)
			l.pass(steady)
			l.mem.SetEpoch(2)
			l.drawn(7)
		}, labConfirm},
		"/cluster made anew, an old ticket": {1, func(l *lab) {
			l.drawn(1)
			l.pass(steady)
			l.remove(clusterPath)
			l.init(l.cl)
		}, labConfirm},
		"restored, old data only": {3, func(l *lab) {
			l.drawn(5)
			l.pass(steady)
			l.mem.Restore(l.mem.Snapshot())
			l.mem.SetEpoch(4)
			l.forget()
		}, labConfirm},
		"wiped, the epoch begins again": {1, func(l *lab) {
			l.pass(steady)
			l.wipe()
			l.init(l.cl)
		}, labConfirm},
	} {
		t.Run(name, func(t *testing.T) {
			l := newEnsembleLab(t, 64, tc.epoch)
			tc.before(l)
			a := l.node("A")
			a.must(a.register())
			if got := time.Duration(a.confirmAt-a.clock()) * time.Millisecond; got != tc.want {
				t.Errorf("confirms in %s, want %s", got, tc.want)
			}
			a.confirm()
			a.crash()
			a.must(a.start()) // a resume confirms by the same rule
			if got := time.Duration(a.confirmAt-a.clock()) * time.Millisecond; tc.epoch > 0 && tc.want == 0 && got != 0 {
				t.Errorf("confirms in %s after a restart", got)
			}
		})
	}
}

// touch writes the cluster's record again, unchanged.
func (l *lab) touch() {
	l.Helper()
	if _, err := l.admin.Set(l.Context(), clusterPath, l.cluster().marshal(), zkstore.AnyVersion); err != nil {
		l.Fatal(err)
	}
}

// drawn creates n tickets of other nodes.
func (l *lab) drawn(n int) {
	l.Helper()
	for range n {
		if _, err := l.admin.Create(l.Context(), ticketPrefix, []byte(`{"node":"x"}`), zkstore.PersistentSequential); err != nil {
			l.Fatal(err)
		}
	}
}

// The write that confirms a slot is versioned. If the holder has come back in time, the new node
// is fenced and does not overwrite the holder's record.
func TestReturningHolderFencesANodeThatConfirms(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	copied := l.mem.Snapshot()
	a.must(a.leave())
	b := l.serving("B")
	if b.claim.Worker != 1 {
		t.Fatalf("%+v", b.claim)
	}
	c := l.serving("C")
	l.mem.Restore(copied) // neither B nor C is known
	l.mem.ExpireOrphans()
	l.forget()
	d := l.node("D")
	d.must(d.register())
	l.pass(labConfirm)
	var holder *member
	for _, m := range []*member{b, c} {
		if m.claim.Worker == d.claim.Worker {
			holder = m
		}
	}
	if holder == nil {
		t.Fatalf("D has %d", d.claim.Worker)
	}
	raced := false
	d.hook = func(c zkstore.Call) zkstore.Fault {
		if c.Op == "multi" && !raced {
			raced = true
			holder.mustBeat()
		}
		return zkstore.NoFault
	}
	_, err := d.beat()
	wantFenced(t, err)
	if !raced || !holder.issue() {
		t.Error("the holder lost to a newcomer")
	}
	l.disjoint()
}

// A process dies before it has confirmed. The node must not start without ZooKeeper, and waits
// for the whole confirming time again.
func TestUnconfirmedRestart(t *testing.T) {
	l := newLab(t, 2)
	a := l.node("A")
	a.must(a.register())
	l.pass(labConfirm - time.Second)
	a.crash()
	a.sess.Partition()
	if err := a.start(); err == nil || a.up {
		t.Fatalf("started alone from %+v", a.disk.claim)
	}
	a.sess.Heal()
	a.must(a.start())
	if a.claim.Worker != 0 || a.claim.Term != 2 || a.confirmAt != l.now+millis(labConfirm) {
		t.Errorf("%+v, confirms in %d", a.claim, a.confirmAt-l.now)
	}
	l.pass(time.Second)
	if beat := a.mustBeat(); beat.Confirmed {
		t.Error("confirmed by the time of the process before")
	}
	a.confirm()
	l.disjoint()
}

// A node that dies before it has confirmed keeps its slot only for its short first lease and the
// grace time.
func TestUnconfirmedSlotIsFreeAfterItsShortLease(t *testing.T) {
	l := newLab(t, 1)
	a := l.node("A")
	a.must(a.register())
	a.crash()
	l.pass(labLease + limits.ClocksAgree)
	b := l.serving("B")
	if b.claim.Worker != 0 || b.claim.Term != 2 {
		t.Errorf("%+v", b.claim)
	}
	if n := len(l.children(ticketsPath)); n != 1 {
		t.Errorf("%d tickets", n)
	}
	wantErrAs[*FullError](t, a.start()) // B has the only slot now
}
