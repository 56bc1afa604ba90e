package coordinator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/zkstore"
)

// Sequences of events that must not break the promise, nor freeze registration without need.

// A node that was stopped over a loss of data comes back days later: others have
// noticed, and the freeze is over.
func TestLateResumeFreezesNobody(t *testing.T) {
	l := newLab(t, 8)
	a, n := l.serving("A"), l.serving("N")
	n.wait = time.Second
	copied := l.mem.Snapshot()
	n.wait = labLease
	l.serve(2 * time.Minute)
	n.crash()
	l.putBack(copied)
	a.mustBeat()
	frozen := l.cluster()
	if !frozen.AllFrozen(l.now) {
		t.Fatalf("%+v", frozen)
	}
	for l.now < frozen.FrozenUntil+millis(time.Hour) {
		l.pass(30 * time.Second)
		a.mustBeat()
	}
	n.must(n.start())
	if cl := l.cluster(); cl.AllFrozen(l.now) {
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

// A newcomer that has not settled loses the cluster that was made in the place of
// another: it does not put it back over that of an owner who returns.
func TestUnsettledNewcomerPutsNoClusterBack(t *testing.T) {
	for name, ends := range map[string]func(*member) error{
		"heartbeat": func(n *member) error { _, _ = n.beat(); return nil },
		"stop":      (*member).halt,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 8)
			a := l.serving("A")
			a.sess.Partition()
			l.wipe()
			l.init(Cluster{UUID: "cluster-2", Layout: "test", Slots: 8, LeaseMs: millis(labW), SettleMs: millis(labSettle)})
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
			if beat := a.mustBeat(); !beat.Lost || !a.issue() {
				t.Errorf("%+v", beat)
			}
			if cl := l.cluster(); cl.UUID != "cluster-1" || !cl.Settled {
				t.Errorf("%+v", cl)
			}
		})
	}
}

// A stop that finds an older copy says so and tries again where it could not freeze
// registration: its own mark would hide the loss.
func TestStopWhoseFreezeIsNotWritten(t *testing.T) {
	l := newLab(t, 2)
	a, cut := l.serving("A"), l.serving("B")
	copied := l.mem.Snapshot()
	cut.wait = labW
	l.serve(2 * time.Minute)
	cut.sess.Partition()
	l.putBack(copied)
	a.hook = faulty(zkstore.FailBefore, 0, 1, touching("set", clusterPath))
	err := a.halt()
	if cl := l.cluster(); err != nil || !cl.AllFrozen(l.now) || !l.slot(0).Stopped {
		t.Errorf("%+v, %v", cl, err)
	}
}

// An owner whose lease is over, and whose clock is far behind the leader's, freezes
// for as long as the lease of another that is cut off.
func TestFreezeByALapsedSlowClock(t *testing.T) {
	for name, ends := range map[string]func(*member){
		"heartbeat": func(a *member) {
			_, err := a.beat()
			wantFenced(a, err)
		},
		"stop": func(a *member) { a.must(a.halt()) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			a.skew = -30_000
			a.mustBeat()
			copied := l.mem.Snapshot()
			l.pass(3 * time.Second)
			a.mustBeat()
			c := l.serving("C")
			c.wait = labW
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
			if cl := l.cluster(); cl.FrozenUntil < c.claim.H {
				t.Errorf("the freeze ends %d ms before a lease", c.claim.H-cl.FrozenUntil)
			}
		})
	}
}

// A freeze came back with older data, and ends before leases do. By the clock of the
// owner who finds it, which is behind, it does not; by the leader's it does.
func TestFreezeThatIsTooShortByTheLeadersClock(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	a.skew = -30_000
	a.mustBeat()
	l.pass(3 * time.Second)
	a.mustBeat()
	l.remove(slotPath(0))
	if _, err := updateCluster(t.Context(), l.admin, func(cl *Cluster) bool {
		cl.Incarnation, cl.FrozenUntil = l.now, l.now+millis(labW)+5_000
		return true
	}); err != nil {
		t.Fatal(err)
	}
	l.forget()
	l.pass(20 * time.Second)
	a.mustBeat()
	if cl := l.cluster(); cl.FrozenUntil < l.now+millis(labW) {
		t.Errorf("the freeze ends %d ms before leases of now", l.now+millis(labW)-cl.FrozenUntil)
	}
}

// Whoever a worker was taken from by hand is fenced, also if it does not know that
// its last write, which named another incarnation, has come through.
func TestReleaseFencesWhateverTheIncarnation(t *testing.T) {
	l := newLab(t, 4)
	a, b := l.serving("A"), l.serving("B")
	b.wait = time.Hour
	b.mustBeat()
	l.remove(slotPath(0))
	a.mustBeat()
	if _, err := Thaw(t.Context(), l.admin, l.cluster(), ""); err != nil {
		t.Fatal(err)
	}
	b.hook = faulty(zkstore.FailAfter, 0, 1, touching("set", slotPath(1)))
	if _, err := b.beat(); err == nil {
		t.Fatal("its write was acknowledged")
	}
	b.hook = nil
	l.takeAway(1)
	_, err := b.beat()
	wantFenced(t, err)
	if cl := l.cluster(); cl.AllFrozen(l.now) {
		t.Errorf("%+v", cl)
	}
}

// What docs/safety.md says of how soon a loss is noticed counts these calls.
func TestFreezeTakesFewCalls(t *testing.T) {
	for name, lose := range map[string]func(l *lab, copied *zkstore.MemSnapshot){
		"an older copy":       (*lab).putBack,
		"its record":          func(l *lab, _ *zkstore.MemSnapshot) { l.remove(slotPath(0)) },
		"the cluster's":       func(l *lab, _ *zkstore.MemSnapshot) { l.remove(clusterPath) },
		"a newcomer's record": func(l *lab, _ *zkstore.MemSnapshot) { l.remove(slotPath(0)); l.takeOver(0, 0, false) },
		"a newcomer's cluster": func(l *lab, _ *zkstore.MemSnapshot) {
			l.wipe()
			l.init(Cluster{UUID: "other", Slots: 2, LeaseMs: l.cl.LeaseMs, SettleMs: l.cl.SettleMs})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			copied := l.mem.Snapshot()
			l.pass(3 * time.Second)
			a.mustBeat()
			lose(l, copied)
			calls, frozen := 0, 0
			a.hook = func(c zkstore.Call) zkstore.Fault {
				if !c.More {
					calls++
				}
				if frozen == 0 && c.Write() && c.Path == clusterPath {
					frozen = calls
				}
				return zkstore.NoFault
			}
			a.mustBeat()
			if frozen == 0 || frozen > limits.FreezeCalls || !l.cluster().AllFrozen(l.now) {
				t.Errorf("frozen after %d calls, want 1 to %d: %+v", frozen, limits.FreezeCalls, l.cluster())
			}
		})
	}
}

// backwards reads several records in the opposite order, as a real ZooKeeper may get the
// requests. between is told of each.
type backwards struct {
	zkstore.Store
	between func(path string)
}

func (b backwards) GetAll(ctx context.Context, paths ...string) ([]zkstore.Record, error) {
	records := make([]zkstore.Record, len(paths))
	for i, path := range slices.Backward(paths) {
		data, stat, err := b.Get(ctx, path)
		if err != nil && !errors.Is(err, zkstore.ErrNoNode) {
			return nil, err
		}
		records[i] = zkstore.Record{Found: err == nil, Data: data, Stat: stat}
		b.between(path)
	}
	return records, nil
}

// The slot is read before the cluster's record, and another node makes the slots in
// between: a newcomer does not take that for a loss of data.
func TestSlotReadBeforeTheClusterGrew(t *testing.T) {
	l := newLab(t, 1)
	b, other := l.node("B"), l.node("other")
	grown := false
	b.co.Store = backwards{b.sess, func(path string) {
		if path != slotPath(0) || grown {
			return
		}
		grown = true
		v, err := other.co.readView(t.Context(), 0)
		if err == nil {
			err = other.co.grow(t.Context(), *v.cl, v.clStat, 0)
		}
		other.must(err)
	}}
	b.must(b.register())
	if s := l.slot(0); !grown || s.Lost || s.Node != b.claim.Node {
		t.Errorf("grown %t: %+v", grown, s)
	}
}

// A process of more workers than there are peers to ask hears of those that come later.
func TestProcessOfManyWorkersHearsOthers(t *testing.T) {
	l := newLab(t, 64)
	ours := make([]int, samplePeers+1)
	a := l.serving("A")
	for i := range ours {
		ours[i] = a.claim.Worker
		if i > 0 {
			ours[i] = l.serving("A").claim.Worker
		}
	}
	a.co.Process, a.co.Siblings = func() string { return "A" }, func() []int { return ours }
	hears := func() int {
		t.Helper()
		a.mustBeat()
		got, err := a.co.Peers(t.Context(), a.claim.Worker)
		a.must(err)
		return len(got)
	}
	if n := hears(); n != 0 {
		t.Fatalf("hears %d of its own", n)
	}
	b := l.serving("B")
	b.mustBeat()
	if n := hears(); n != 1 {
		t.Errorf("hears %d of 1", n)
	}
}

// Nodes that have stopped have no vote: their last write is later than their last report,
// which would be for a clock that is behind.
func TestStoppedNodesHaveNoVote(t *testing.T) {
	l := newLab(t, 64)
	for range 20 {
		l.serving("N")
	}
	for _, m := range l.nodes {
		m.mustBeat()
	}
	heard := func() (readings []Reading) {
		t.Helper()
		a := l.nodes[0]
		a.mustBeat()
		readings, err := a.co.Peers(t.Context(), a.claim.Worker)
		a.must(err)
		return readings
	}
	if n := len(heard()); n != samplePeers {
		t.Fatalf("hears %d", n)
	}
	l.pass(2 * DefaultHeartbeat)
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

// After ZooKeeper has lost its data the list of live workers may have changed as often as
// before. It is another list all the same.
func TestLiveListMadeAgain(t *testing.T) {
	l := newLab(t, 8)
	a, b, c := l.serving("A"), l.serving("B"), l.serving("C")
	c.must(c.halt())
	b.mustBeat()
	peers := func() int {
		t.Helper()
		a.mustBeat()
		got, err := a.co.Peers(t.Context(), a.claim.Worker)
		a.must(err)
		return len(got)
	}
	for range 2 {
		b.mustBeat()
		if n := peers(); n != 1 {
			t.Fatalf("hears %d of 1", n)
		}
	}
	l.wipe()
	b.sess.Partition()
	l.pass(time.Second)
	a.mustBeat()
	c.must(c.start())
	c.mustBeat()
	_, list, err := l.admin.Get(t.Context(), livePath)
	if err != nil {
		t.Fatal(err)
	}
	a.co.roster.version.changes = list.Children
	c.mustBeat()
	if n := peers(); n != 1 {
		t.Errorf("hears %d of 1, with %+v", n, a.co.roster)
	}
}
