package coordinator

import (
	"testing"
	"time"
)

// What owners and newcomers do when ZooKeeper has lost data.

// wipe loses everything, as a standalone server that was set up anew.
func (l *lab) wipe() {
	l.mem.Wipe()
	l.forget()
}

// takeOver writes another's record into a slot, with a term above the one there.
func (l *lab) takeOver(worker int, term int64, settled bool) Slot {
	l.Helper()
	s := Slot{Node: "other", Term: term, Nonce: "others", H: l.now + millis(labLease), Settled: settled}
	l.put(worker, s)
	return s
}

// A slot that was taken over is fenced also when /cluster is missing then: our
// clock may be behind that of those who saw our lease run out.
func TestFencedAlthoughTheClusterRecordIsLost(t *testing.T) {
	for name, after := range map[string]func(l *lab){
		"cluster missing":     func(l *lab) {},
		"cluster made anew":   func(l *lab) { l.init(Cluster{UUID: "other", Slots: 4, LeaseMs: l.cl.LeaseMs}) },
		"settled, equal term": func(l *lab) { l.takeOver(0, 1, true) },
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

// A copy of the data that is put back during a freeze brings a freeze with it
// that ends before the leases do that were made since.
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
	if until := l.cluster().FrozenUntil; until < b.claim.H || until <= first {
		t.Errorf("frozen until %d, first until %d, B has a lease until %d", until, first, b.claim.H)
	}

	// Owners that notice the same loss a little later leave it at that.
	_, before, err := l.admin.Get(t.Context(), clusterPath)
	b.sess.Heal()
	l.pass(time.Second)
	b.mustBeat()
	if _, after, err2 := l.admin.Get(t.Context(), clusterPath); err != nil || err2 != nil || after.Version != before.Version {
		t.Errorf("/cluster was written again: %+v, %+v, %v %v", before, after, err, err2)
	}
}

// The cluster that took our place is settled by another while we put ours back.
func TestReassertGivesWayToAClusterSettledMeanwhile(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	l.wipe()
	newer := Cluster{UUID: "newer", Slots: 4, LeaseMs: l.cl.LeaseMs}
	l.init(newer)
	l.put(0, Slot{Node: "newcomer", Nonce: "n", Term: 1, H: l.now + 1})
	was := l.slot(0)
	a.hook = func(c Call) Fault {
		if c.Op == "ensure root" || c.Op == "set" { // judged by now
			newer.Settled = true
			_, _ = l.admin.Set(t.Context(), clusterPath, newer.marshal(), 0)
		}
		return NoFault
	}
	_, err := a.beat()
	wantFenced(t, err)
	if got := l.slot(0); got != was {
		t.Errorf("the newer cluster's slot was overwritten by %+v", got)
	}
}

// Somebody deleted all slots, and the directory with them.
func TestOwnersComeBackIntoAnEmptyTree(t *testing.T) {
	for _, gone := range [][]string{{slotPath(0), slotPath(1), workersPath}, {slotPath(0), slotPath(1), workersPath, clusterPath}} {
		l := newLab(t, 2)
		a, b := l.serving("A"), l.serving("B")
		for _, p := range gone {
			l.remove(p)
		}
		for _, m := range []*member{a, b} {
			if beat := m.mustBeat(); !beat.Lost || !beat.Settled {
				t.Errorf("%s: %+v", m.name, beat)
			}
		}
		l.pass(time.Second)
		if !a.issue() || !b.issue() {
			t.Error("an owner issues nothing")
		}
		if s := l.slot(1); s.Node != b.claim.Node || l.cluster().FrozenUsed != 1 {
			t.Errorf("%+v in %+v", s, l.cluster())
		}
		l.disjoint()
	}
}
