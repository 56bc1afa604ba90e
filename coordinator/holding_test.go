package coordinator

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/zkstore"
)

// The heartbeat that planned returns has these values. The record is ours, and our clock reads
// planNow and agrees with the leader's. planNow is Unix milliseconds, planSettle milliseconds.
const (
	planNow    = int64(1_000_000)
	planLease  = time.Minute
	planSettle = int64(10_000)
)

func planned() (holding, view, evidence, Report) {
	claim := Claim{Node: "me", Worker: 3, Term: 5, Nonce: "n", Settled: true, Lo: planNow - 9_000, H: planNow + 40_000}
	cl := Cluster{UUID: "c", Slots: 16, LeaseMs: planLease.Milliseconds(), SettleMs: planSettle, Settled: true, Used: 7}
	slot := Slot{Node: "me", Term: 5, Nonce: "n", Settled: true, H: claim.H}
	t := holding{Claim: claim, written: true, version: 8, compared: true, comparedBound: claim.H, comparedEpoch: 1}
	v := view{cl: &cl, clStat: zkstore.Stat{Version: 2}, slot: &slot, stat: zkstore.Stat{Version: 8, Mzxid: 1 << 32}}
	e := evidence{now: planNow, mine: cl, reading: Reading{Sent: planNow - 3_000, Acked: planNow - 3_000, Stamp: planNow - 3_000}}
	return t, v, e, Report{Lease: planLease, State: "serving"}
}

func TestPlan(t *testing.T) {
	frozen := func(v view) { v.cl.FrozenUntil = planNow + 1 }
	for name, row := range map[string]struct {
		change func(t *holding, v view, e *evidence, r *Report)
		// The wanted decision: to be fenced for this reason, to renew, or what to write.
		fenced                   string
		renew                    bool
		settled, settles, lapsed bool
		h                        int64 // after planNow
		notBefore                int64 // after planNow; 0: any
	}{
		"well": {settled: true, h: 60_000},
		"a clock that is not trusted moves nothing": {change: func(_ *holding, _ view, _ *evidence, r *Report) { r.Lease = 0 }, settled: true, h: 40_000},
		"an old copy of its state": {change: func(_ *holding, v view, _ *evidence, r *Report) { r.RestartedFrom, v.slot.Generation = 4, 5 },
			fenced: "old copy of its state"},
		"a restart": {change: func(_ *holding, _ view, _ *evidence, r *Report) { r.RestartedFrom = 4 }, renew: true},
		"a restart whose write was not acknowledged": {change: func(t *holding, v view, _ *evidence, r *Report) {
			r.RestartedFrom, v.slot.Generation, t.granted = 4, 5, []string{"m", "n"}
		}, renew: true},
		"a newcomer in a freeze": {change: func(t *holding, v view, _ *evidence, _ *Report) { frozen(v); t.Settled, v.slot.Settled = false, false },
			fenced: "registration is frozen, which keeps the worker for an earlier holder"},
		"a newcomer in a freeze, by the leader's clock": {change: func(t *holding, v view, e *evidence, _ *Report) {
			v.cl.FrozenUntil = planNow - 1
			e.reading.Stamp -= 2_000
			t.Settled, v.slot.Settled = false, false
		}, fenced: "registration is frozen, which keeps the worker for an earlier holder"},
		"a newcomer on a worker that was opened": {change: func(t *holding, v view, _ *evidence, _ *Report) {
			frozen(v)
			v.cl.Open = "3"
			t.Settled, v.slot.Settled = false, false
		}, h: 60_000},
		"an owner in a freeze": {change: func(_ *holding, v view, _ *evidence, _ *Report) { frozen(v) }, settled: true, h: 60_000},
		"a newcomer that settles": {change: func(t *holding, v view, _ *evidence, r *Report) {
			t.Settled, v.slot.Settled, r.Settle = false, false, true
		},
			settled: true, settles: true, h: 60_000},
		"a restart that settles in a freeze, by its lease": {change: func(_ *holding, v view, _ *evidence, r *Report) {
			frozen(v)
			v.slot.Settled, r.Settle = false, true
		}, settled: true, settles: true, h: 60_000},
		"the same with a doubt": {change: func(t *holding, v view, _ *evidence, r *Report) {
			frozen(v)
			v.slot.Settled, r.Settle = false, true
			t.doubt = doubt{raised: true, now: planNow, stamp: planNow}
		}, h: 60_000},
		"a doubt that would have it begin long from now": {change: func(t *holding, v view, _ *evidence, r *Report) {
			v.slot.Settled, r.Settle = false, true
			t.doubt = doubt{raised: true, now: planNow, stamp: planNow + 60_000}
		}, h: 60_000},
		"and that most do not believe": {change: func(t *holding, v view, e *evidence, r *Report) {
			v.slot.Settled, r.Settle, e.agreed = false, true, true
			t.doubt = doubt{raised: true, now: planNow, stamp: planNow + 60_000}
		}, settled: true, settles: true, h: 60_000},
		"a lease that had run out": {change: func(t *holding, v view, _ *evidence, r *Report) {
			t.H, v.slot.H, r.Settle = planNow, planNow, true
		}, lapsed: true, h: 60_000, notBefore: planSettle},
		"and that has not waited yet": {change: func(t *holding, _ view, _ *evidence, r *Report) { t.notBefore, r.Settle = planNow+1, true },
			lapsed: true, h: 60_000, notBefore: planSettle},
		"and that has": {change: func(t *holding, v view, _ *evidence, r *Report) {
			t.notBefore, v.slot.Settled, r.Settle = planNow, false, true
		},
			settled: true, settles: true, h: 60_000},
	} {
		hold, v, e, r := planned()
		if row.change != nil {
			row.change(&hold, v, &e, &r)
		}
		p := hold.plan(v, e, r)
		switch {
		case row.fenced != "" || p.fenced != "":
			if row.fenced == "" || !strings.Contains(p.fenced, row.fenced) {
				t.Errorf("%s: fenced since %q", name, p.fenced)
			}
			continue
		case row.renew || p.renew:
			if row.renew != p.renew {
				t.Errorf("%s: renew is %t", name, p.renew)
			}
			continue
		}
		if p.slot.Settled != row.settled || p.settles != row.settles || p.lapsed != row.lapsed || p.slot.H != planNow+row.h {
			t.Errorf("%s: settled %t, settles %t, lapsed %t, H %d", name, p.slot.Settled, p.settles, p.lapsed, p.slot.H-planNow)
		}
		if row.notBefore > 0 && p.holding.notBefore != planNow+row.notBefore {
			t.Errorf("%s: may settle from %d on", name, p.holding.notBefore-planNow)
		}
	}
}

func TestAccept(t *testing.T) {
	for name, row := range map[string]struct {
		change func(t *holding, p *decision, v view, after *zkstore.Stat, e *evidence)

		settled, lapsed, again, doubted bool
		lo                              int64 // after planNow
	}{
		"well": {settled: true, lo: -9_000},
		"the lease had run out by the leader's clock, and nothing was lost": {change: func(_ *holding, _ *decision, _ view, after *zkstore.Stat, _ *evidence) {
			after.Mtime = planNow + 40_000
		},
			settled: true, lo: -9_000},
		"and something may have been": {change: func(_ *holding, _ *decision, _ view, after *zkstore.Stat, _ *evidence) {
			after.Mtime, after.Mzxid = planNow+40_000, 2<<32
		}, again: true, lapsed: false, doubted: true},
		"the same where it was written unsettled": {change: func(_ *holding, p *decision, _ view, after *zkstore.Stat, _ *evidence) {
			p.slot.Settled = false
			after.Mtime, after.Mzxid = planNow+40_000, 2<<32
		}, lapsed: true, doubted: true, lo: -9_000},
		"a standalone server, which shows no loss": {change: func(_ *holding, _ *decision, _ view, after *zkstore.Stat, _ *evidence) {
			after.Mtime, after.Mzxid = planNow+40_000, 7
		}, again: true, doubted: true},
		"a leader that most find ahead": {change: func(_ *holding, _ *decision, _ view, after *zkstore.Stat, e *evidence) {
			e.agreed, e.reading.Stamp = true, e.reading.Stamp+60_000
			after.Mtime, after.Mzxid = planNow+60_000, 2<<32
		}, settled: true, lo: -9_000},
		"settled after its lease had run out": {change: func(t *holding, p *decision, v view, _ *zkstore.Stat, _ *evidence) {
			t.H, v.slot.H, t.comparedBound, v.cl.BorrowMs = planNow-1, planNow+99, planNow+99, 300
		}, settled: true, lo: 300},
		"settled after a doubt": {change: func(t *holding, _ *decision, _ view, _ *zkstore.Stat, _ *evidence) {
			t.doubt = doubt{raised: true, now: planNow - 20_000, stamp: planNow + 700}
		}, settled: true, lo: 701},
		"a doubt that is over": {change: func(t *holding, _ *decision, _ view, _ *zkstore.Stat, _ *evidence) {
			t.doubt = doubt{raised: true, now: planNow - 20_000, stamp: planNow + 700, floor: planNow - 5}
		}, settled: true, lo: -5},
	} {
		hold, v, e, r := planned()
		p := hold.plan(v, e, r)
		after := zkstore.Stat{Version: 9, Mzxid: 1<<32 + 5, Mtime: planNow}
		if row.change != nil {
			row.change(&hold, &p, v, &after, &e)
		}
		p.holding = hold
		next, beat, lapsed, again := p.accept(v, after, e)
		if again != row.again || lapsed != row.lapsed || next.doubted() != row.doubted || next.version != 9 {
			t.Errorf("%s: again %t, lapsed %t, doubted %t, version %d", name, again, lapsed, next.doubted(), next.version)
		}
		if again {
			continue
		}
		if beat.Settled != row.settled || beat.Claim.Lo != planNow+row.lo || beat.H != p.slot.H {
			t.Errorf("%s: settled %t, from %d to %d", name, beat.Settled, beat.Claim.Lo-planNow, beat.H-planNow)
		}
	}
}

// For every record found: the record written carries the claim and lowers no bound. A floor
// never goes down. While its slot is frozen, a holder settles only if its lease runs. A write
// that settles also checks that no freeze has come in between.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string) int64 { return rapid.Int64Range(-20, 60).Draw(t, name) * 1000 }
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		hold, v, e, r := planned()
		hold.Settled, hold.H, hold.Lo = yes("claim settled"), planNow+small("claim's H"), planNow+small("floor")
		v.slot.Settled, v.slot.H = yes("found settled"), planNow+small("found H")
		v.cl.FrozenUntil, v.cl.Open = planNow+small("frozen until"), rapid.SampledFrom([]WorkerSet{"", "3", "4-9"}).Draw(t, "open")
		hold.notBefore, hold.compared = planNow+small("not before"), yes("compared")
		if yes("doubt") {
			hold.doubt = doubt{raised: true, now: planNow + small("doubted at"), stamp: planNow + small("doubted by"), floor: max(0, planNow*rapid.Int64Range(0, 1).Draw(t, "begun")+small("floor of the doubt"))}
		}
		e.reading.Stamp, e.agreed = planNow+small("stamp"), yes("agreed")
		r.Settle, r.Lease = yes("settle"), rapid.SampledFrom([]time.Duration{0, planLease}).Draw(t, "lease")
		p := hold.plan(v, e, r)
		if p.fenced != "" {
			if hold.Settled {
				t.Fatal("an owner is fenced")
			}
			return
		}
		frozen := v.cl.Frozen(3, e.earliest())
		switch {
		case p.slot.Nonce != hold.Nonce || p.slot.Term != hold.Term || p.slot.H < max(v.slot.H, hold.H):
			t.Fatalf("%+v", p.slot)
		case p.settles && frozen && !hold.leased(e.now):
			t.Fatal("settles in a freeze")
		case p.slot.Settled && !v.slot.Settled && !p.settles:
			t.Fatal("is settled without the proof")
		case p.slot.Settled && p.lapsed && !p.settles:
			t.Fatal("a lease that had run out stays settled")
		}
		after := zkstore.Stat{Version: 9, Mzxid: rapid.Int64Range(0, 2).Draw(t, "epoch") << 32, Mtime: planNow + small("written at")}
		next, beat, _, again := p.accept(v, after, e)
		switch {
		case again && !p.slot.Settled:
			t.Fatal("takes back what does not count")
		case again:
		case beat.Claim.Lo < hold.Lo:
			t.Fatalf("the floor went from %d to %d", hold.Lo, beat.Claim.Lo)
		case beat.Settled && next.doubted():
			t.Fatal("settled, and doubted")
		case beat.Settled && !hold.leased(e.now) && beat.Claim.Lo < e.now:
			t.Fatal("goes on below now after its lease had run out")
		}
	})
}
