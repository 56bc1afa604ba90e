package coordinator

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

func (l *lab) liveHolder(worker int) int64 {
	_, stat, _ := l.admin.Get(l.Context(), lockPath(worker))
	return stat.Owner
}

// kill -9 leaves the node's live lock behind. The node's next process keeps the slot and replaces that lock.
func TestOwnLockLingers(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	old := l.liveHolder(0)
	a.crash()
	a.must(a.start())
	a.confirm()
	if now := l.liveHolder(0); a.claim.Worker != 0 || now == old || now != a.sess.SessionID() {
		t.Errorf("worker %d, lock of session %d, before %d, ours %d", a.claim.Worker, now, old, a.sess.SessionID())
	}
	l.expire()
	if l.liveHolder(0) != a.sess.SessionID() {
		t.Error("the lock went with the old session")
	}
}

// A fenced node deletes its live lock, even if ZooKeeper does not answer at first. Otherwise the lock would keep all
// nodes off the slot for as long as the process runs.
func TestFencedLeavesNoLock(t *testing.T) {
	for name, fault := range map[string]store.Fault{"answered": store.NoFault, "not answered": store.FailBefore} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			l.put(0, Slot{Node: "b", Nonce: "b", Term: 2, LeaseUntil: l.now + 1000, Confirmed: true,
				History: l.taken(0)})
			l.forget()
			a.hook = faulty(fault, 0, 1, touching("delete", lockPath(0)))
			_, err := a.beat()
			wantFenced(t, err)
			a.hook = nil
			l.pass(7 * time.Second)
			a.must(a.register())
			a.confirm()
			l.disjoint()
		})
	}
}

// A heartbeat sees that the list of live workers has changed when the peers were asked after the change: in the
// heartbeat before.
func TestLivesAgainAfterExpiryAndLoss(t *testing.T) {
	for name, trouble := range map[string]func(*lab, *member){
		"expired": func(_ *lab, a *member) { a.sess.Expire() },
		"wiped":   func(l *lab, _ *member) { l.wipe() },
		"no directory": func(l *lab, _ *member) {
			l.remove(lockPath(0))
			l.remove(livePath)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			trouble(l, a)
			for range 2 {
				l.pass(time.Second)
				a.mustBeat()
				_, err := a.co.Peers(t.Context(), 0)
				a.must(err)
			}
			if l.liveHolder(0) != a.sess.SessionID() {
				t.Error("not live")
			}
		})
	}
}

func TestPeers(t *testing.T) {
	l := newLab(t, 64)
	l.wipe()
	l.mem.SetEpoch(2)
	l.init(l.cl)
	a, b, c := l.serving("A"), l.serving("B"), l.serving("C")
	b.skew, c.skew = 700, -300
	l.serve(3 * time.Second)
	peers := func(want ...int64) {
		t.Helper()
		got, err := a.co.Peers(t.Context(), a.claim.Worker)
		if err != nil {
			t.Fatal(err)
		}
		var offsets []int64
		for _, r := range got {
			offsets = append(offsets, r.Sent-r.Stamp)
		}
		if len(offsets) != len(want) {
			t.Fatalf("offsets %v, want %v", offsets, want)
		}
		for i := range want {
			if offsets[i] != want[i] {
				t.Errorf("offsets %v, want %v", offsets, want)
			}
		}
	}
	peers(700, -300)
	l.pass(9 * time.Second) // three heartbeats
	a.mustBeat()
	peers(700, -300)
	l.pass(time.Millisecond)
	a.mustBeat() // now our write shows that theirs are too old
	peers()
	b.mustBeat()
	peers(700)
	l.mem.SetEpoch(3) // another leader, with another clock
	a.mustBeat()
	peers()
	c.mustBeat()
	peers(-300)
	l.put(2, Slot{}) // unreadable
	l.forget()
	peers()
	l.remove(lockPath(1))
	b.peers()
	b.mustBeat()
	peers(700)
	l.remove(livePath + "/0000")
	l.remove(livePath + "/0001")
	l.remove(livePath + "/0002")
	l.remove(livePath)
	peers()
}

func TestPeersOfMany(t *testing.T) {
	l := newLab(t, 64)
	for range 20 {
		l.serving("N")
	}
	a := l.nodes[0]
	l.serve(3 * time.Second)
	got, err := a.co.Peers(t.Context(), a.claim.Worker)
	if err != nil || len(got) != samplePeers {
		t.Errorf("%d, %v", len(got), err)
	}
}

// A node was killed, started again, and stopped before its first heartbeat. The stop must also delete the live lock
// that the killed process left.
func TestStopTakesTheLockOfAKilledSessionAlong(t *testing.T) {
	for name, end := range map[string]func(*member) error{"stop": (*member).halt, "release": (*member).leave} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			a.crash()
			a.boot()
			a.must(a.resume())
			if len(l.children(livePath)) != 1 {
				t.Fatalf("%q", l.children(livePath))
			}
			a.must(end(a))
			if locks := l.children(livePath); len(locks) != 0 {
				t.Errorf("left behind: %q", locks)
			}
		})
	}
}

// The live lock is not read at every heartbeat. All the same a node notices soon that somebody has deleted it.
func TestLockDeletedByHand(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	reads := 0
	a.hook = func(c store.Call) store.Fault {
		if touching("get", lockPath(0))(c) {
			reads++
		}
		return store.NoFault
	}
	for range 10 {
		l.pass(time.Second)
		a.mustBeat()
		a.peers()
	}
	if reads > 2 {
		t.Errorf("read %d times in 10 heartbeats", reads)
	}
	l.remove(lockPath(0))
	a.peers()
	a.mustBeat()
	if l.liveHolder(0) != a.sess.SessionID() {
		t.Error("not live")
	}
}
