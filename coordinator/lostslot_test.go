package coordinator

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// startsOfA are the states of node A in which ZooKeeper loses its data.
var startsOfA = map[string]func(l *lab, a *member, lose func()){
	"A runs on": func(l *lab, a *member, lose func()) {
		lose()
		_, err := a.beat()
		l.Logf("A's heartbeat: %v", err)
	},
	"A was started from its directory": func(l *lab, a *member, lose func()) {
		a.crash()
		a.sess.Partition()
		a.must(a.start())
		if !a.up || !a.h.Alone() {
			l.Fatal("not from its directory")
		}
		lose()
		a.sess.Heal()
		_, err := a.beat()
		l.Logf("A's heartbeat: %v", err)
	},
	"A is started after the loss": func(l *lab, a *member, lose func()) {
		a.crash()
		lose()
		l.Logf("A's start: %v", a.start())
		if a.up {
			_, err := a.beat()
			l.Logf("A has %+v, its heartbeat: %v", a.claim, err)
		}
	},
}

// olderOrOther are the losses after which another node has a higher term.
var olderOrOther = map[string]func(l *lab, copied *store.MemSnapshot){
	"older copy": (*lab).putBack,
	"made anew": func(l *lab, _ *store.MemSnapshot) {
		l.wipe()
		l.init(Cluster{UUID: "newer", Layout: "test", Slots: 8, LeaseMs: l.cl.LeaseMs, ConfirmMs: l.cl.ConfirmMs})
	},
}

// ZooKeeper loses the records of two holders, A and B: it is put back to a copy from before they acquired their
// workers, or is emptied and a cluster is created there. B is cut off and serves by its lease. A new node acquires A's
// worker and restarts before it has confirmed, as a pod may, so its term is above A's. A comes back within the
// confirming time. It freezes registration, or B's worker would be given away while B serves.
func TestHigherTermAfterALossFreezes(t *testing.T) {
	for start, back := range startsOfA {
		for loss, lose := range olderOrOther {
			t.Run(start+", "+loss, func(t *testing.T) {
				l := newLab(t, 8)
				copied := l.mem.Snapshot()
				a, b := l.serving("A"), l.serving("B")
				a.wait, b.wait = time.Hour, labW
				l.serve(time.Minute)
				b.sess.Partition() // cut off: it serves below its lease bound

				back(l, a, func() {
					lose(l, copied)
					l.pass(time.Second)
					n := l.node("N")
					n.must(n.start())
					n.crash()
					l.expire()
					l.pass(time.Second)
					n.must(n.start())
					if n.claim.Worker != 0 || n.claim.Term != 2 || l.slot(0).Confirmed {
						t.Fatalf("%+v, %+v", n.claim, l.slot(0))
					}
				})
				if !l.cluster().Frozen(l.now) { // B's worker would be given away
					t.Errorf("A was back 2s after the loss, and registration is not frozen: %+v", l.cluster())
				}
				l.disjoint()
			})
		}
	}
}

// takenAfterALoss returns a holder whose lease runs. ZooKeeper has been put back to a copy from before it acquired its
// worker, and another node has confirmed that worker since.
func takenAfterALoss(t *testing.T) (*lab, *member) {
	t.Helper()
	l := newLab(t, 8)
	copied := l.mem.Snapshot()
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
