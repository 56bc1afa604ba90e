package coordinator

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// A freeze lasts for the longest lease and 10 s, or until the horizon, which is a 64th of the lease and two and a half
// confirming times later when it is written with the freeze.
func TestFreezeEnd(t *testing.T) {
	for _, row := range []struct{ horizon, now, want int64 }{
		{0, 5_000, 75_000}, {75_000, 5_000, 75_000}, {75_001, 5_000, 75_001},
	} {
		if got := (Cluster{LeaseMs: 60_000, Horizon: row.horizon}).FreezeEnd(row.now); got != row.want {
			t.Errorf("horizon %d: ends at %d, want %d", row.horizon, got, row.want)
		}
	}
	if got := (Cluster{LeaseMs: 64_000, ConfirmMs: 2_000, FrozenUntil: 1}).Freeze(0); got.FrozenUntil != 80_000 ||
		got.Horizon != 80_000 {
		t.Errorf("%+v", got)
	}
}

func TestLossAfter(t *testing.T) {
	const now, lease = int64(1_000_000), int64(64_000)
	mine := Cluster{UUID: "c", Slots: 16, LeaseMs: lease, HighestSlot: 7, Horizon: now + 500}
	far := mine.nextHorizon(now)
	cluster := func(used int, incarnation, horizon, frozenUntil int64, by string) Cluster {
		return Cluster{UUID: "c", Slots: 16, LeaseMs: lease, InUse: true, HighestSlot: used,
			Incarnation: incarnation, Horizon: horizon, FrozenUntil: frozenUntil, FrozenBy: by}
	}
	other := func(confirmed bool) *Cluster { return &Cluster{UUID: "d", Slots: 16, InUse: confirmed} }
	found := func(used int, incarnation, horizon, frozenUntil int64, by string) *Cluster {
		cl := cluster(used, incarnation, horizon, frozenUntil, by)
		return &cl
	}
	unleased := cluster(7, 6, far, far, "")
	unleased.InUse = false
	for name, row := range map[string]struct {
		found  *Cluster
		leased bool
		want   *Cluster // nil: nothing is written
	}{
		"gone":                    {nil, true, found(7, 6, far, far, "")},
		"gone, no lease":          {nil, false, &unleased},
		"an older copy":           {found(3, 4, now+9, 0, ""), true, found(7, 6, far, far, "")},
		"as we know it":           {found(9, 5, now+9, 0, ""), true, found(9, 6, far, far, "")},
		"as we know it, no lease": {found(9, 5, now+9, 0, ""), false, found(9, 6, far, far, "")},
		"a horizon beyond ours":   {found(7, 5, far+9, 0, ""), true, found(7, 6, far+9, far+9, "")},
		"another, not confirmed":  {other(false), true, found(7, 6, far, far, "")},
		"another, confirmed":      {other(true), true, nil},
		"frozen by an operator":   {found(7, 5, now, now+5, "op"), true, found(7, 6, far, far, "")},
		"frozen for longer":       {found(7, 5, now, far+9, "op"), true, found(7, 6, far, far+9, "")},
		"noticed by another":      {found(7, 6, now, mine.FreezeEnd(now), ""), true, nil},
		"noticed, the freeze ends early": {
			found(7, 6, now, mine.FreezeEnd(now)-1, ""), true, found(7, 6, far, far, ""),
		},
		"noticed, and thawed":              {found(7, 6, now, 0, ""), true, found(7, 6, far, far, "")},
		"noticed and thawed, no lease":     {found(7, 6, now, 0, ""), false, nil},
		"noticed twice, by others":         {found(7, 9, now, 0, ""), true, found(7, 9, far, far, "")},
		"noticed, and an operator's since": {found(7, 6, now, now+1, "op"), true, found(7, 6, far, far, "op")},
	} {
		got, ok := Loss{Known: 5, MayRestoreCluster: true}.nextCluster(row.found, mine, now, row.leased)
		if ok != (row.want != nil) || ok && got != *row.want {
			t.Errorf("%s: %t\n got %+v\nwant %+v", name, ok, got, row.want)
		}
	}
	// A node that never confirmed does not put its cluster anywhere.
	for name, there := range map[string]*Cluster{"gone": nil, "another": other(false)} {
		if _, ok := (Loss{Known: 5}).nextCluster(there, mine, now, false); ok {
			t.Errorf("%s: put back", name)
		}
	}
}

// The holder of a lost record does not come back. Its slot is free when the freeze and the grace time are over. It must
// not be kept for another lease.
func TestLostSlotsAreFreeAfterTheFreeze(t *testing.T) {
	for name, notices := range map[string]func(*member){
		"noticed by a holder": func(a *member) { a.mustBeat() },
		"put back at a start": func(a *member) {
			a.must(func() error { _, err := a.co.RestoreCluster(t.Context()); return err }())
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

// A holder that puts its record back gets the lease that it asks for, not the bound of the stand-in that it
// replaces. Here the leader's clock is an hour ahead at the first loss, and so is that bound. With it the holder could
// issue after the freeze of the second loss has ended.
func TestHolderInheritsNoBoundOfALostRecord(t *testing.T) {
	l := newLab(t, 2)
	l.wipe()
	l.init(l.cl)
	a, b := l.serving("A"), l.serving("B")
	leader := func(ahead time.Duration) { // the nodes' clocks stay right, and most agree with them
		l.Leap(ahead)
		for _, m := range l.nodes {
			m.agreed = true
		}
	}
	leader(time.Hour)
	l.serve(labConfirm + 9*time.Second) // they confirm anew
	l.wipe()
	b.mustBeat()
	if s := l.slot(a.claim.Worker); !s.StandsIn {
		t.Fatalf("nobody has replaced A's record: %+v", s)
	}
	if beat := a.mustBeat(); !beat.Restored || beat.LeaseUntil > a.clock()+millis(a.wait) {
		t.Errorf("its lease is of %s, it asked for %s", time.Duration(beat.LeaseUntil-a.clock())*time.Millisecond,
			a.wait)
	}
	leader(-time.Hour)
	l.forget()
	l.serve(labConfirm + 9*time.Second)
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

// A freeze ends when the node's clock and the leader's have both passed its end. A clock that is ahead ends no freeze.
func TestClockAheadEndsNoFreeze(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	l.remove(SlotPath(0))
	a.mustBeat()
	m := l.node("M")
	m.SetSkew(labW + labW/64 + 3*labConfirm + 2*limits.ClocksApart)
	if m.clock() < l.cluster().FrozenUntil {
		t.Fatal("not ahead of the freeze")
	}
	wantErrAs[*FrozenError](t, m.register())
}

// A stop or release that finds its record missing or older, or the cluster's record missing, freezes registration
// first: its own write hides the loss from other nodes. The freeze counts from now, although the node last read the
// leader's clock 20 s ago. One set of the cluster's record is enough.
func TestStopNoticesALoss(t *testing.T) {
	for name, lose := range map[string]func(l *lab){
		"its record":    func(l *lab) { l.remove(SlotPath(0)) },
		"the cluster":   func(l *lab) { l.remove(clusterPath) },
		"everything":    (*lab).wipe,
		"an older copy": func(l *lab) { l.putBack(l.copied) },
	} {
		for how, stop := range map[string]func(*member) error{"stop": (*member).halt, "release": (*member).leave} {
			l := newLab(t, 2)
			a := l.serving("A")
			l.copied = l.Mem.Snapshot()
			l.serve(2 * time.Minute)
			l.pass(20 * time.Second)
			lose(l)
			writes, bound := 0, a.claim.LeaseUntil
			a.hook = func(c memzk.Call) memzk.Fault {
				if c.Write() && c.Path == clusterPath && c.Op == "set" {
					writes++
				}
				return memzk.NoFault
			}
			if err := stop(a); err != nil || writes > 1 {
				t.Errorf("%s, %s: %d writes, %v", name, how, writes, err)
			}
			cl := l.cluster()
			if cl.UUID != l.cl.UUID || cl.Incarnation == 0 || cl.FrozenUntil != l.cl.nextHorizon(l.now) {
				t.Errorf("%s, %s: %+v, want a freeze until %d", name, how, cl, l.cl.nextHorizon(l.now))
			}
			if data, _, err := l.admin.Get(t.Context(), SlotPath(0)); err == nil && parseSlot(data).Stopped &&
				parseSlot(data).LeaseUntil < bound {
				t.Errorf("%s, %s: %s, its lease ended at %d", name, how, data, bound)
			}
		}
	}
}
