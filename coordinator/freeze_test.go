package coordinator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/internal/zkstore"
)

func TestFrozenAfterLoss(t *testing.T) {
	const now, lease = int64(1_000_000), int64(60_000)
	mine := Cluster{UUID: "c", Slots: 16, LeaseMs: lease, HighestSlot: 7, Incarnation: 5, Confirmed: true}
	until := now + lease + lossTolerance
	cluster := func(uuid string, used int, incarnation, frozenUntil int64, by string) Cluster {
		return Cluster{UUID: uuid, Slots: 16, LeaseMs: lease, Confirmed: true, HighestSlot: used, Incarnation: incarnation, FrozenUntil: frozenUntil, FrozenBy: by}
	}
	for name, row := range map[string]struct{ found, want Cluster }{
		"gone":                           {Cluster{HighestSlot: -1}, cluster("c", 7, now, until, "")},
		"an older copy":                  {cluster("c", 3, 4, 0, ""), cluster("c", 7, now, until, "")},
		"as we know it":                  {cluster("c", 9, 5, 0, ""), cluster("c", 9, now, until, "")},
		"another, not confirmed":         {cluster("d", 2, 0, 0, ""), cluster("c", 7, now, until, "")},
		"frozen by an operator":          {cluster("c", 7, 5, now+5, "op"), cluster("c", 7, now, until, "")},
		"frozen for longer":              {cluster("c", 7, 5, until+9, "op"), cluster("c", 7, now, until+9, "")},
		"noticed by another":             {cluster("c", 7, 6, until-1, ""), cluster("c", 7, 6, until-1, "")},
		"noticed long ago":               {cluster("c", 7, 6, now+1, ""), cluster("c", 7, 6, until, "")},
		"noticed, and the freeze over":   {cluster("c", 7, 6, now, ""), cluster("c", 7, now, until, "")},
		"noticed, and thawed":            {cluster("c", 7, 6, 0, ""), cluster("c", 7, now, until, "")},
		"noticed by a clock far ahead":   {cluster("c", 7, now+99, 0, ""), cluster("c", 7, now+100, until, "")},
		"of the incarnation that we are": {cluster("c", 7, 5, until-1, ""), cluster("c", 7, now, until, "")},
	} {
		if got := frozenAfterLoss(row.found, mine, now); got != row.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, row.want)
		}
	}
	ahead := mine
	ahead.Incarnation = now + 7
	if got := frozenAfterLoss(Cluster{HighestSlot: -1}, ahead, now); got.Incarnation != now+8 {
		t.Errorf("incarnation %d by a clock that is behind", got.Incarnation)
	}
	// A node without a lease writes Confirmed only if it finds our cluster's record, confirmed.
	unconfirmed := mine
	unconfirmed.Confirmed = false
	for name, row := range map[string]struct {
		found Cluster
		want  bool
	}{
		"gone":                   {Cluster{HighestSlot: -1}, false},
		"ours":                   {cluster("c", 7, 5, 0, ""), true},
		"another, not confirmed": {Cluster{UUID: "d", Slots: 16}, false},
	} {
		if got := frozenAfterLoss(row.found, unconfirmed, now); got.Confirmed != row.want {
			t.Errorf("%s: confirmed is %t", name, got.Confirmed)
		}
	}
}

// For every record found: the new incarnation is later than the holder's. The freeze lasts for at least a lease, and does not
// end earlier than the one found.
func TestFrozenAfterLossProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string) int64 { return rapid.Int64Range(0, 60).Draw(t, name) }
		draw := func(name string) Cluster {
			return Cluster{
				UUID: rapid.SampledFrom([]string{"c", "d"}).Draw(t, name), Slots: 4, LeaseMs: 20, HighestSlot: int(small("used")) - 1,
				Incarnation: small("incarnation"), FrozenUntil: small("until"), Confirmed: rapid.Bool().Draw(t, "confirmed"),
			}
		}
		found, mine, now := draw("found"), draw("mine"), small("now")
		mine.UUID = "c"
		got := frozenAfterLoss(found, mine, now)
		switch {
		case got.UUID != "c" || got.Confirmed != (mine.Confirmed || found.UUID == "c" && found.Confirmed) || got.HighestSlot < max(found.HighestSlot, mine.HighestSlot):
			t.Fatalf("%+v", got)
		case got.Incarnation <= mine.Incarnation || got.Incarnation < found.Incarnation:
			t.Fatalf("incarnation %d", got.Incarnation)
		case got.FrozenUntil < max(found.FrozenUntil, now+mine.LeaseMs):
			t.Fatalf("frozen until %d", got.FrozenUntil)
		}
		// A second write for the same loss, lossTolerance later, changes nothing unless the
		// freeze has become too short.
		if again := frozenAfterLoss(got, mine, now+lossTolerance); again != got && !(again.FrozenUntil > got.FrozenUntil && got.FrozenUntil < now+lossTolerance+mine.LeaseMs) {
			t.Fatalf("%+v became %+v", got, again)
		}
	})
}

// The holder of a lost record does not come back. Its slot is free when the freeze and the grace
// time are over. It must not be kept for another lease.
func TestLostSlotsAreFreeAfterTheFreeze(t *testing.T) {
	for name, notices := range map[string]func(*member){
		"noticed by a holder": func(a *member) { a.mustBeat() },
		"put back at a start": func(a *member) {
			a.must(func() error { _, err := a.co.PutBack(t.Context(), a.claim); return err }())
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a, b := l.serving("A"), l.serving("B")
			b.sess.Partition()
			l.wipe()
			notices(a)
			until := l.cluster().FrozenUntil
			wantErrAs[*FrozenError](t, l.node("C").register())
			l.pass(time.Duration(until-1-l.now) * time.Millisecond)
			b.issue()
			wantErrAs[*FrozenError](t, l.node("C").register())
			l.pass(time.Duration(1+l.cluster().graceMs()) * time.Millisecond)
			d := l.node("D")
			d.must(d.register())
			if d.claim.Floor < until {
				t.Errorf("%+v, frozen until %d", d.claim, until)
			}
			d.confirm()
			d.issue()
			l.disjoint()
		})
	}
}

// A holder that puts its record back gets the lease that it asks for, not the bound of the Lost
// record that it replaces. Here the leader's clock is an hour ahead at the first loss, and so is
// that bound. With it the holder could issue after the freeze of the second loss has ended.
func TestHolderInheritsNoBoundOfALostRecord(t *testing.T) {
	l := newLab(t, 2)
	l.wipe()
	l.mem.SetEpoch(2)
	l.init(l.cl)
	a, b := l.serving("A"), l.serving("B")
	leader := func(ahead time.Duration) { // the nodes' clocks stay right, and most agree with them
		l.pass(ahead)
		for _, m := range l.nodes {
			m.skew, m.agreed = m.skew-millis(ahead), true
		}
	}
	leader(time.Hour)
	l.serve(9 * time.Second)
	l.wipe()
	b.mustBeat()
	if s := l.slot(a.claim.Worker); !s.Lost {
		t.Fatalf("nobody has replaced A's record: %+v", s)
	}
	if beat := a.mustBeat(); !beat.Lost || beat.LeaseUntil > a.clock()+millis(a.wait) {
		t.Errorf("its lease is of %s, it asked for %s", time.Duration(beat.LeaseUntil-a.clock())*time.Millisecond, a.wait)
	}
	l.mem.SetEpoch(5)
	leader(-time.Hour)
	l.forget()
	l.serve(9 * time.Second)
	a.sess.Partition()
	a.sess.Expire()
	l.wipe()
	b.mustBeat()
	l.now = l.cluster().FrozenUntil + l.cluster().graceMs()
	n := l.node("newcomer")
	n.must(n.register())
	n.confirm()
	for range 10 {
		a.extend()
		n.extend()
		if a.issue() {
			t.Error("A issues, though the freeze is over")
		}
		n.issue()
		l.pass(time.Second)
	}
	l.disjoint()
}

// A freeze ends when the node's clock and the leader's have both passed its end. A clock that
// is ahead ends no freeze.
func TestClockAheadEndsNoFreeze(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	l.remove(slotPath(0))
	a.mustBeat()
	m := l.node("M")
	m.skew = millis(labW) + 2*lossTolerance
	if m.clock() < l.cluster().FrozenUntil {
		t.Fatal("not ahead of the freeze")
	}
	wantErrAs[*FrozenError](t, m.register())
}

// A node that does not trust its own clock has no vote on the clocks of others.
func TestClockThatIsKnownToBeWrongHasNoVote(t *testing.T) {
	l := newLab(t, 4)
	a, b := l.serving("A"), l.serving("B")
	peers := func() int {
		readings, err := a.co.Peers(t.Context(), a.claim.Worker)
		if err != nil {
			t.Fatal(err)
		}
		return len(readings)
	}
	b.mustBeat()
	a.mustBeat()
	if n := peers(); n != 1 {
		t.Fatalf("%d peers", n)
	}
	if _, err := b.co.Heartbeat(t.Context(), b.claim, Report{State: "refusing"}); err != nil { // a lease of 0: the clock is not trusted
		t.Fatal(err)
	}
	if n := peers(); n != 0 {
		t.Errorf("%d peers", n)
	}
}

// A stop or release that finds its record missing, or the cluster's, freezes registration. The
// freeze counts from now, although the node last read the leader's clock 20 s ago. One set of
// the cluster's record is enough.
func TestStopNoticesALoss(t *testing.T) {
	for name, lose := range map[string]func(l *lab){
		"its record":  func(l *lab) { l.remove(slotPath(0)) },
		"the cluster": func(l *lab) { l.remove(clusterPath) },
		"everything":  (*lab).wipe,
	} {
		for how, stop := range map[string]func(*member) error{"stop": (*member).halt, "release": (*member).leave} {
			l := newLab(t, 2)
			a := l.serving("A")
			l.pass(20 * time.Second)
			lose(l)
			writes := 0
			a.hook = func(c zkstore.Call) zkstore.Fault {
				if c.Write() && c.Path == clusterPath && c.Op == "set" {
					writes++
				}
				return zkstore.NoFault
			}
			if err := stop(a); err != nil || writes > 1 {
				t.Errorf("%s, %s: %d writes, %v", name, how, writes, err)
			}
			cl := l.cluster()
			if !cl.Frozen(l.now) || cl.UUID != l.cl.UUID || cl.Incarnation == 0 {
				t.Errorf("%s, %s: %+v", name, how, cl)
			}
			if want := l.now + millis(labW) + lossTolerance; cl.FrozenUntil != want {
				t.Errorf("%s, %s: the freeze ends %d ms from now, want %d", name, how, cl.FrozenUntil-l.now, want-l.now)
			}
		}
	}
}
