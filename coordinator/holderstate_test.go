package coordinator

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// The heartbeat that planned returns has these values. The record is ours, and our clock reads planNow and agrees with
// the leader's. planNow is Unix milliseconds, planConfirm milliseconds.
const (
	planNow     = int64(1_000_000)
	planLease   = time.Minute
	planConfirm = int64(10_000)
)

func planned() (holderState, recordPair, evidence, Report) {
	claim := Claim{Owner: Owner{"me", 3}, Term: 5, Nonce: "n", Generation: 3, EverConfirmed: true,
		Floor:      planNow - 9_000,
		LeaseUntil: planNow + 40_000, Chain: Chain{Began: 40e9, Sent: 47e9, Version: 8}}
	cl := Cluster{UUID: "c", Slots: 16, LeaseMs: planLease.Milliseconds(), ConfirmMs: planConfirm, InUse: true,
		HighestSlot: 7, Horizon: planNow + 90_000}
	slot := Slot{Node: "me", Term: 5, Nonce: "n", Confirmed: true, LeaseUntil: claim.LeaseUntil}
	t := holderState{Claim: claim, stage: Confirmed, sinceGrant: sinceGrant{boundKnown: true, bound: claim.LeaseUntil}}
	v := recordPair{cl: &cl, clStat: store.Stat{Version: 2}, slot: &slot, slotStat: store.Stat{Version: 8, Mzxid: 1 << 32}}
	e := evidence{now: planNow, at: timeguard.Moment{Boot: 50e9, Least: 50e9, Most: 50e9},
		horizon:  horizon{known: cl.Horizon, usable: cl.Horizon},
		interval: limits.DefaultHeartbeat, mine: cl, self: Slot{Labels: Labels{Name: "me"}},
		reading: Reading{Sent: planNow - 3_000, Acked: planNow - 3_000,
			Stamp: planNow - 3_000}}
	return t, v, e, Report{Lease: planLease, Phase: "serving"}
}

func frozen(v recordPair) { v.cl.FrozenUntil = planNow + 1 }

// planRow is a case of plan: a record of ours, and the decision expected.
type planRow struct {
	change func(t *holderState, v recordPair, e *evidence, r *Report)
	// The wanted decision: to be fenced for this reason, to renew, or what to write.
	fenced                         string
	renew                          bool
	confirmed, confirms, reconfirm bool
	raises                         bool  // the horizon
	h                              int64 // after planNow
	waits                          int64 // until it may confirm, ms; 0: any
}

var plans = map[string]planRow{
	"well": {confirmed: true, h: 60_000},
	"a clock that is not trusted moves nothing": {change: func(_ *holderState, _ recordPair, _ *evidence,
		r *Report) {
		r.Lease = 0
	}, confirmed: true, h: 40_000},
	"an old copy of its state": {change: func(t *holderState, v recordPair, _ *evidence, _ *Report) {
		t.stage, t.startedFrom, v.slot.Generation = Alone, 4, 5
	},
		fenced: "old copy of its state"},
	"a restart": {change: func(t *holderState, _ recordPair, _ *evidence, _ *Report) { t.stage, t.startedFrom = Alone, 4 },
		renew: true},
	"a restart whose write was not acknowledged": {change: func(t *holderState, v recordPair, _ *evidence, _ *Report) {
		t.stage, t.startedFrom, v.slot.Generation, t.granted = Alone, 4, 5, []string{"m", "n"}
	}, renew: true},
	"a newcomer in a freeze": {change: func(t *holderState, v recordPair, _ *evidence, _ *Report) {
		frozen(v)
		t.EverConfirmed, v.slot.Confirmed = false, false
	},
		fenced: "registration is frozen, which keeps the worker for an earlier holder"},
	"a newcomer in a freeze, by the leader's clock": {change: func(t *holderState, v recordPair, e *evidence, _ *Report) {
		v.cl.FrozenUntil = planNow - 1
		e.reading.Stamp -= 2_000
		t.EverConfirmed, v.slot.Confirmed = false, false
	}, fenced: "registration is frozen, which keeps the worker for an earlier holder"},
	"a holder in a freeze": {change: func(_ *holderState, v recordPair, _ *evidence, _ *Report) { frozen(v) },
		confirmed: true, h: 60_000},
	"a newcomer that confirms": {change: func(t *holderState, v recordPair, _ *evidence, _ *Report) {
		t.EverConfirmed, v.slot.Confirmed, t.stage = false, false, Confirming
	},
		confirmed: true, confirms: true, h: 60_000},
	"a restart that confirms in a freeze": {change: func(t *holderState, v recordPair, _ *evidence, _ *Report) {
		frozen(v)
		v.slot.Confirmed, t.stage = false, Confirming
	}, confirmed: true, confirms: true, h: 60_000},
	"a lease that would pass the horizon": {change: func(_ *holderState, _ recordPair, e *evidence,
		_ *Report) {
		e.horizon.usable = planNow + 50_000
	}, confirmed: true, h: 50_000},
	"a horizon that is below the lease": {change: func(_ *holderState, _ recordPair, e *evidence,
		_ *Report) {
		e.horizon.usable = planNow + 30_000
	}, confirmed: true, h: 40_000},
	"a horizon that is near": {change: func(_ *holderState, v recordPair, _ *evidence, _ *Report) {
		v.cl.Horizon = planNow + 60_000 + planConfirm*5/4 - 1
	}, confirmed: true, h: 60_000, raises: true},
	"and the clock is not trusted": {change: func(_ *holderState, v recordPair, _ *evidence, r *Report) {
		v.cl.Horizon,
			r.Lease = planNow, 0
	}, confirmed: true, h: 40_000},
	"the same after an expiry": {change: func(t *holderState, v recordPair, _ *evidence, _ *Report) {
		frozen(v)
		v.slot.Confirmed, t.stage = false, Confirming
		t.noteExpired(planNow, planNow)
	}, h: 60_000},
	"an expiry after which it would begin long from now": {change: func(t *holderState, v recordPair, _ *evidence, _ *Report) {
		v.slot.Confirmed, t.stage = false, Confirming
		t.noteExpired(planNow, planNow+60_000)
	}, h: 60_000},
	"and that most do not believe": {change: func(t *holderState, v recordPair, e *evidence, _ *Report) {
		v.slot.Confirmed, t.stage, e.agreed = false, Confirming, true
		t.noteExpired(planNow, planNow+60_000)
	}, confirmed: true, confirms: true, h: 60_000},
	"a lease that had run out": {change: func(t *holderState, v recordPair, _ *evidence, _ *Report) {
		t.LeaseUntil, v.slot.LeaseUntil, t.stage = planNow, planNow, Confirming
	}, reconfirm: true, h: 60_000, waits: planConfirm},
	"and the clock is not trusted by then": {change: func(t *holderState, v recordPair, _ *evidence, r *Report) {
		t.LeaseUntil, v.slot.LeaseUntil, t.stage, r.Lease = planNow-5, planNow-5, Confirming, 0
	}, reconfirm: true, h: -5, waits: planConfirm},
	"and that has not waited yet": {change: func(t *holderState, _ recordPair, e *evidence, _ *Report) {
		t.confirmAt, t.stage = e.at.Least+1, Confirming
	}, reconfirm: true, h: 60_000, waits: planConfirm},
	"and that has": {change: func(t *holderState, v recordPair, e *evidence, _ *Report) {
		t.confirmAt, v.slot.Confirmed, t.stage = e.at.Least, false, Confirming
	}, confirmed: true, confirms: true, h: 60_000},
	"a newcomer that waits": {change: func(t *holderState, v recordPair, e *evidence, _ *Report) {
		t.EverConfirmed, v.slot.Confirmed, t.stage, t.confirmAt = false, false, Confirming, e.at.Least+1
	}, h: 60_000},
	"and whose boot clock is fast": {change: func(t *holderState, v recordPair, e *evidence, _ *Report) {
		t.EverConfirmed, v.slot.Confirmed, t.stage, t.confirmAt = false, false, Confirming, e.at.Least+1
		e.at.Boot, e.at.Most = e.at.Least+1e9, e.at.Least+1e9
	}, h: 60_000},
}

func (row planRow) action() action {
	switch {
	case row.fenced != "":
		return actGiveUp
	case row.renew:
		return actNextTerm
	}
	return actWrite
}

func TestPlan(t *testing.T) {
	for name, row := range plans {
		hold, v, e, r := planned()
		if row.change != nil {
			row.change(&hold, v, &e, &r)
		}
		p := hold.plan(v, e, r)
		if want := row.action(); p.action != want || !strings.Contains(p.why, row.fenced) {
			t.Errorf("%s: action %d since %q, want %d", name, p.action, p.why, want)
		}
		if p.action != actWrite {
			continue
		}
		if p.slot.Node != hold.Node || p.slot.Nonce != hold.Nonce || p.slot.Generation != hold.Generation ||
			p.slot.Name != e.self.Name || p.slot.ClockWrong != (r.Lease == 0) || p.slot.ReportedClock != planNow {
			t.Errorf("%s: writes %+v", name, p.slot)
		}
		if p.slot.Confirmed != row.confirmed || p.confirms != row.confirms || p.reconfirm != row.reconfirm ||
			p.slot.LeaseUntil != planNow+row.h {
			t.Errorf("%s: confirmed %t, confirms %t, reconfirm %t, H %d", name, p.slot.Confirmed, p.confirms, p.reconfirm,
				p.slot.LeaseUntil-planNow)
		}
		if raises := p.cluster.Horizon != v.cl.Horizon; raises != row.raises ||
			raises && p.cluster.Horizon != v.cl.nextHorizon(planNow) {
			t.Errorf("%s: writes the cluster's record: %+v", name, p.cluster)
		}
		if left := p.confirmAt - e.at.Least; row.waits > 0 && left != row.waits*1e6 {
			t.Errorf("%s: may confirm in %d ns", name, left)
		}
	}
}

// The stages and transitions that the comment of holderState shows.
func TestStages(t *testing.T) {
	_, v, e, r := planned()
	w := timeguard.Stamped{Sent: e.at, Acked: e.at, Stamp: planNow}
	grant := func(h *holderState) {
		claim := h.Claim
		claim.PendingTerm, claim.PendingNonce = h.Term+1, "next"
		h.notePending(claim, h.Generation+1)
		h.noteGrantAcked(w, 8, e.interval, 0, v.slot.LeaseUntil)
		h.becomeConfirming(e.at.Least)
	}
	confirm := func(h *holderState) {
		h.becomeAccepted(Beat{Confirmed: true, LeaseUntil: v.slot.LeaseUntil, Floor: planNow}, 0)
	}
	h := newHolderState(Claim{Owner: Owner{"me", 3}})
	for _, step := range []struct {
		name   string
		do     func(h *holderState)
		stage  Stage
		expiry expiryState
		runs   bool // the chain
	}{
		{"begins", func(*holderState) {}, Seeking, unexpired, false},
		{"acquires a slot", grant, Confirming, unexpired, true},
		{"confirms it", confirm, Confirmed, unexpired, true},
		{"expires by the leader's clock", func(h *holderState) { h.noteExpired(planNow, planNow) }, Confirmed, expired, true},
		{"waits again", func(h *holderState) { h.becomeConfirming(e.at.Least) }, Confirming, expired, true},
		{"plans to confirm", func(h *holderState) {
			found := *v.slot
			found.Confirmed = false
			if d := h.plan(recordPair{cl: v.cl, slot: &found}, e, r); !d.confirms {
				t.Errorf("%+v", d)
			}
			h.endExpiry(*v.cl, e)
		}, Confirming, reconfirmed, true},
		{"confirms again", confirm, Confirmed, reconfirmed, true},
		{"notices a loss of data", func(h *holderState) { h.beginIncarnation() }, Confirmed, reconfirmed, false},
		{"starts again without ZooKeeper", func(h *holderState) { *h = newHolderState(h.Claim); h.becomeAlone(planNow+1, 9) }, Alone,
			unexpired, false},
		{"writes the next term", grant, Confirming, unexpired, true},
		{"does not know its last write", func(h *holderState) { h.noteUnstamped(9) }, Confirming, unexpired, false},
	} {
		step.do(&h)
		if h.stage != step.stage || h.expiry.state != step.expiry || h.Chain.runs() != step.runs {
			t.Fatalf("%s: stage %d, expiry %d, %+v", step.name, h.stage, h.expiry.state, h.Chain)
		}
	}
	if h.Term != 2 || h.Nonce != "next" || h.PendingNonce != "" || h.Floor != planNow+1 || h.Chain.Version != 9 {
		t.Errorf("%+v", h.Claim)
	}
}

// What an acknowledgement proves: the stage and the expiry since then.
func TestAcked(t *testing.T) {
	for name, row := range map[string]struct {
		change func(t *holderState, p *decision, v recordPair, after *store.Stat, e *evidence)

		confirmed, again bool
		stage            Stage // 0: Confirmed
		expiry           expiryState
		lo               int64 // after planNow
	}{
		"well": {confirmed: true, lo: -9_000},
		"had run out by the leader's clock": {change: func(_ *holderState, _ *decision, _ recordPair, after *store.Stat,
			_ *evidence) {
			after.Mtime = planNow + 40_000
		}, again: true, expiry: expired},
		"the same where it was written unconfirmed": {change: func(_ *holderState, p *decision, _ recordPair, after *store.Stat,
			_ *evidence) {
			p.slot.Confirmed = false
			after.Mtime = planNow + 40_000
		}, stage: Confirming, expiry: expired, lo: -9_000},
		"a leader that most find ahead": {change: func(_ *holderState, _ *decision, _ recordPair, after *store.Stat,
			e *evidence) {
			e.agreed, e.reading.Stamp = true, e.reading.Stamp+60_000
			after.Mtime = planNow + 60_000
		}, confirmed: true, lo: -9_000},
		"confirmed after its lease had run out": {change: func(t *holderState, p *decision, v recordPair, _ *store.Stat,
			_ *evidence) {
			t.LeaseUntil, v.slot.LeaseUntil, t.bound, v.cl.BorrowMs = planNow-1, planNow+99, planNow+99, 300
		}, confirmed: true, lo: 300},
		"and its floor is ahead of that": {change: func(t *holderState, _ *decision, v recordPair, _ *store.Stat, _ *evidence) {
			t.LeaseUntil, v.slot.LeaseUntil, t.bound, t.Floor = planNow-1, planNow+99, planNow+99, planNow+5
		}, confirmed: true, lo: 5},
		"confirmed after the leader showed an expiry": {change: func(t *holderState, _ *decision, _ recordPair, _ *store.Stat, _ *evidence) {
			t.noteExpired(planNow-20_000, planNow+700)
		}, confirmed: true, expiry: reconfirmed, lo: 701},
		"an expiry after which it was confirmed": {change: func(t *holderState, _ *decision, _ recordPair, _ *store.Stat, _ *evidence) {
			t.noteExpired(planNow-20_000, planNow+700)
			t.noteReconfirmed(planNow - 5)
		}, confirmed: true, expiry: reconfirmed, lo: -5},
		"long ago": {change: func(t *holderState, _ *decision, _ recordPair, _ *store.Stat, _ *evidence) {
			t.noteExpired(planNow-20_000, planNow-20_000)
			t.noteReconfirmed(planNow - 20_000)
		}, confirmed: true, expiry: reconfirmed, lo: -9_000},
	} {
		hold, v, e, r := planned()
		p := hold.plan(v, e, r)
		after := store.Stat{Version: 9, Mzxid: 1<<32 + 5, Mtime: planNow}
		if row.change != nil {
			row.change(&hold, &p, v, &after, &e)
		}
		beat, err := hold.acked(p, v, timeguard.Stamped{Sent: e.at, Acked: e.at, Stamp: after.Mtime}, after, e)
		want := cmp.Or(row.stage, Confirmed)
		if again := err != nil; again != row.again || hold.stage != want || hold.expiry.state != row.expiry ||
			(hold.stage == Confirming) != (beat.wait > 0) {
			t.Errorf("%s: %v, stage %d, expiry %d, waits %s", name, err, hold.stage, hold.expiry.state, beat.wait)
		}
		if err != nil {
			continue
		}
		if beat.Confirmed != row.confirmed || beat.Floor != planNow+row.lo || beat.LeaseUntil != p.slot.LeaseUntil {
			t.Errorf("%s: confirmed %t, from %d to %d", name, beat.Confirmed, beat.Floor-planNow,
				beat.LeaseUntil-planNow)
		}
	}
}

// For every record found: the record written carries the claim and lowers no bound. A floor never goes down. While its
// slot is frozen, a holder confirms only if its lease runs. A write that confirms also checks that no freeze has come
// in between.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string) int64 { return rapid.Int64Range(-20, 60).Draw(t, name) * 1000 }
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		hold, v, e, r := planned()
		hold.EverConfirmed, hold.LeaseUntil, hold.Floor = yes("claim confirmed"), planNow+small("claim's H"),
			planNow+small("floor")
		v.slot.Confirmed, v.slot.LeaseUntil = yes("found confirmed"), planNow+small("found lease bound")
		v.cl.FrozenUntil = planNow + small("frozen until")
		hold.confirmAt = e.at.Least + small("not before")*1e6
		if !yes("compared") {
			hold.boundKnown = false
		}
		if yes("expired") {
			hold.noteExpired(planNow+small("noticed at"), planNow+small("leader's time then"))
			if yes("reconfirmed") {
				hold.noteReconfirmed(planNow + small("floor since"))
			}
		}
		e.reading.Stamp, e.agreed = planNow+small("stamp"), yes("agreed")
		hold.stage = rapid.SampledFrom([]Stage{Confirming, Confirmed}).Draw(t, "state")
		r.Lease = rapid.SampledFrom([]time.Duration{0, planLease}).Draw(t, "lease")
		p := hold.plan(v, e, r)
		if p.action == actGiveUp {
			if hold.EverConfirmed {
				t.Fatal("a holder is fenced")
			}
			return
		}
		frozen := v.cl.Frozen(e.earliest())
		switch {
		case p.slot.Nonce != hold.Nonce || p.slot.Term != hold.Term ||
			p.slot.LeaseUntil < max(v.slot.LeaseUntil, hold.LeaseUntil):
			t.Fatalf("%+v", p.slot)
		case p.confirms && frozen && !hold.Leased(e.now, e.at.Boot):
			t.Fatal("confirms in a freeze")
		case p.slot.Confirmed && !v.slot.Confirmed && !p.confirms:
			t.Fatal("is confirmed without the proof")
		case p.slot.Confirmed && p.reconfirm && !p.confirms:
			t.Fatal("a lease that had run out stays confirmed")
		}
		after := store.Stat{Version: 9, Mzxid: 1, Mtime: planNow + small("written at")}
		floor := hold.Floor
		hold.confirmAt = p.confirmAt
		beat, err := hold.acked(p, v, timeguard.Stamped{Sent: e.at, Acked: e.at, Stamp: after.Mtime}, after, e)
		switch again := err != nil; {
		case again && !p.slot.Confirmed:
			t.Fatal("takes back what does not count")
		case again:
		case beat.Floor < floor:
			t.Fatalf("the floor went from %d to %d", floor, beat.Floor)
		case beat.Confirmed && hold.expiry.state == expired:
			t.Fatal("confirmed, and expired")
		case beat.Confirmed && !hold.Leased(e.now, e.at.Boot) && beat.Floor < e.now:
			t.Fatal("goes on below now after its lease had run out")
		}
	})
}

// pausable is a machine whose boot clock and wall clock a test sets.
type pausable struct{ boot, wall int64 }

func (p *pausable) Wall() int64 { return p.wall }
func (p *pausable) Mono() int64 { return p.boot }
func (p *pausable) Boot() int64 { return p.boot }

func (p *pausable) pass(d time.Duration) { p.boot, p.wall = p.boot+int64(d), p.wall+int64(d) }

// A pause of the machine is a gap, also if the boot clock has stood still: the wall clock shows it, or the leader does,
// in the same process or in the next one. A boot clock that is fast makes no chain older.
func TestPauseEndsTheChain(t *testing.T) {
	const beat, s = 3 * time.Second, time.Second
	for name, row := range map[string]struct {
		boot, wall, leader time.Duration // what passes by each clock
		want               time.Duration // the age of the chain
	}{
		"no pause":                 {s, s, s, 2 * s},
		"the wall clock is right":  {s, 60 * s, 60 * s, 0},
		"both stand still":         {s, s, 60 * s, 0},
		"the boot clock is fast":   {5 * s, 2 * s, 2 * s, 3 * s},
		"both are fast":            {5 * s, 5 * s, 2 * s, 3*s + time.Millisecond},
		"the leader steps back":    {s, s, -60 * s, s + time.Millisecond},
		"the wall clock goes back": {s, -60 * s, s, s},
	} {
		for _, restarts := range []bool{false, true} {
			clock, leader := &pausable{100e9, 5000e9}, int64(7_000_000)
			e := timeguard.NewElapsed(clock)
			var c Claim
			write := func(last timeguard.Stamped) {
				now := e.Now()
				c.Last = e.Acknowledged(last, timeguard.Stamped{Sent: now, Acked: now, Stamp: leader})
				c.Chain = c.Chain.extended(c.Last, 7, beat)
			}
			write(timeguard.Stamped{})
			clock.pass(s)
			leader += s.Milliseconds()
			write(c.Last)
			clock.boot, clock.wall, leader = clock.boot+int64(row.boot), clock.wall+int64(row.wall),
				leader+row.leader.Milliseconds()
			if restarts {
				e = timeguard.NewElapsed(clock)
				c = c.Rebased(e, true)
			}
			write(c.Last)
			if got := c.Chain.Unbroken(e.Now(), beat); got != row.want {
				t.Errorf("%s, in another process %t: the chain is %s old, want %s", name, restarts, got, row.want)
			}
		}
	}
}

// The leader's stamp of a heartbeat shows that it confirms too early. The record is written again, unconfirmed.
func TestStampOfABeatThatConfirmsTooEarly(t *testing.T) {
	for name, row := range map[string]struct {
		confirms bool
		left     int64 // of the confirming time, by the corrected clock
		want     bool
	}{
		"does not confirm": {false, 1, false},
		"in time":          {true, 0, false},
		"too early":        {true, 1, true},
	} {
		hold, v, e, r := planned()
		d := hold.plan(v, e, r)
		d.confirms, d.confirmAt = row.confirms, e.at.Least+row.left
		after := v.slotStat
		after.Mtime = planNow
		if _, err := hold.acked(d, v, timeguard.Stamped{Sent: e.at, Acked: e.at, Stamp: planNow}, after, e); (err != nil) != row.want ||
			row.want && hold.confirmAt != e.at.Least+planConfirm*1e6 {
			t.Errorf("%s: %v, confirms at %d", name, err, hold.confirmAt)
		}
	}
}

// If a lease had run out by the leader's clock, the tenure goes on no earlier than now, and above the leader's time
// when that was noticed. If most voters agree with our clock, at most 5 s of the leader's lead are believed. BorrowMs
// is added.
func TestExpiredFloorIsAboveTheLeadersTime(t *testing.T) {
	const noticed = int64(1_000_000)
	for name, row := range map[string]struct {
		stamp, now int64
		agreed     bool
		want       int64
	}{
		"the leader is behind": {noticed - 4_000, noticed + 900, true, noticed + 900},
		"the leader is ahead":  {noticed + 4_000, noticed + 900, true, noticed + 4_001},
		"the leader is far ahead, and most are not": {
			noticed + 60_000, noticed + 900, true, noticed + clocksAgree + 1,
		},
		"the leader is far ahead, and nobody says so": {noticed + 60_000, noticed + 900, false, noticed + 60_001},
		"it has passed what the leader read":          {noticed + 4_000, noticed + 9_000, true, noticed + 9_000},
	} {
		d := expiry{state: expired, ourClock: noticed, leaderClock: row.stamp}
		if got := d.newFloor(evidence{now: row.now, agreed: row.agreed,
			mine: Cluster{BorrowMs: 300}}); got != row.want+300 {
			t.Errorf("%s: %d, want %d", name, got-noticed, row.want+300-noticed)
		}
	}
}

// A slot may be confirmed when its tenure can begin: a start waits 10 s at most, and BorrowMs is part of them.
func TestFloorTooFarAhead(t *testing.T) {
	const now, borrow = int64(1_000_000), 300
	for _, row := range []struct {
		ahead int64
		want  bool
	}{{-4_000, false}, {10_000 - borrow - 1, false}, {10_000 - borrow, true}, {60_000, true}} {
		var hold holderState
		hold.noteExpired(now, now+row.ahead)
		if got := hold.floorTooFarAhead(evidence{now: now, mine: Cluster{BorrowMs: borrow}}); got != row.want {
			t.Errorf("%d ms ahead: %v", row.ahead, got)
		}
	}
}

// A floor that was saved when a lease had run out is above what was reserved before that.
func TestBecomeAloneKeepsTheHigherFloor(t *testing.T) {
	for _, row := range [][3]int64{{5000, 4000, 5000}, {4000, 5000, 5000}} {
		h := newHolderState(Claim{Floor: row[0]})
		if h.becomeAlone(row[1], 1); h.Floor != row[2] {
			t.Errorf("%v: floor %d", row, h.Floor)
		}
	}
}

func TestHorizon(t *testing.T) {
	const confirm = 10 * time.Second
	at := func(s int64) int64 { return s * int64(time.Second) }
	h := horizon{}.saw(100, at(1))
	if h.usable != 100 {
		t.Errorf("the first one: %+v", h)
	}
	h = h.saw(150, at(2)).saw(120, at(3)).saw(200, at(5))
	if h.known != 200 || h.at(at(12)-1, confirm).usable != 100 {
		t.Errorf("usable at once: %+v", h)
	}
	if h = h.at(at(12), confirm); h.usable != 150 || h.at(at(22)-1, confirm).usable != 150 ||
		h.at(at(22), confirm).usable != 200 {
		t.Errorf("%+v", h)
	}
	cl := Cluster{LeaseMs: 6400, ConfirmMs: 800, Horizon: 5000}
	if next := cl.nextHorizon(10_000); next != 10_000+6400+clocksApart+100+2*1000 {
		t.Errorf("the next one is %d", next)
	}
	if next := cl.nextHorizon(-20_000); next != 5000 {
		t.Errorf("it goes back to %d", next)
	}
	const lease = time.Second
	if cl.withHorizon(3000, lease) != cl || cl.withHorizon(3001, lease).Horizon != cl.nextHorizon(3001) ||
		cl.withHorizon(9000, 0) != cl {
		t.Error("it is raised at another distance")
	}
}
