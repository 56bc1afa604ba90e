package coordinator

import (
	"testing"
)

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
