package node

import (
	"errors"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// tenure is the time for which this process holds one slot. A request may still be using a tenure after another has
// replaced it, so a tenure that has ended must have its generator closed.
type tenure struct {
	coordinator.Owner
	floor  int64 // the first timestamp, above all of earlier holders (C2), Unix ms
	gen    *worker.Generator
	closed bool // closeBelowFloor has closed its generator
}

// beginTenure creates the tenure of the slot. The tenure issues nothing until startServing has put it into serving.
func (k *keeper) beginTenure() error {
	claim := k.coord.Claim()
	if err := k.checkEra(); err != nil {
		return err
	}
	if err := k.checkFloor(claim.Floor); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	gen, err := worker.NewGenerator(worker.GeneratorConfig{
		Layout: k.layout, Datacenter: k.view.Load().Cluster.Datacenter, Worker: int64(claim.Worker),
		Floor: k.layout.CeilTick(claim.Floor),
		Clock: k.clock, OnRollback: k.onRollback, CountRollbacks: k.onRollback.Counts(), Borrow: k.borrow,
		SequenceStart: k.sequenceStart, SegmentStart: k.segmentStart, Rand: k.cfg.Rand, Counts: &k.meter.worker,
	})
	if err != nil {
		return err
	}
	if next := k.view.Load().Next; next != nil {
		k.reservedUntil = next.ReservedUntil
	}
	k.view.Store(k.coord.View())
	k.cfg.Trace.Step("tenure", "worker", claim.Worker, "floor", claim.Floor)
	k.tenure = &tenure{Owner: claim.Owner, floor: claim.Floor, gen: gen}
	return nil
}

// beginNextTenure begins a tenure in place of a closed one. If the clock forbids that, beginNextTenure sets the refusal
// and returns nil: the heartbeat has succeeded, and the round goes on to compare clocks. The next heartbeat tries again.
func (k *keeper) beginNextTenure() error {
	err := k.beginTenure()
	if _, ofClock := errors.AsType[*ClockError](err); !ofClock {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.skew.rounds.Wrong() {
		return nil // judgeClock has set the refusal
	}
	now := k.now()
	r := Refusal{Phase: Refusing, Cause: CauseClockBehind, Behind: timeguard.StartWait(now, k.view.Load().Claim.Floor)}
	if !inEra(k.layout, now) {
		r = Refusal{Phase: Refusing, Cause: CauseTimeUsedUp, Era: era(k.layout)}
	}
	if k.refusal.Load().Cause != r.Cause {
		k.say(k.log.Warn, "the next tenure cannot begin", "cause", r.Cause, "behind_ms", r.Behind.Milliseconds(),
			"error", err)
	}
	k.refuseLocked(r)
	return nil
}

// closeBelowFloor closes the tenure if its floor is below that of the slot. Either the lease had run out, and another
// node may have held the slot since. Or the slot was confirmed for the first time, and the tenure has never served.
// closeBelowFloor reports whether it has closed the tenure, now or in a heartbeat that could not begin the next one.
// end is the end of what the tenure has issued, Unix ms.
func (k *keeper) closeBelowFloor(floor int64) (end int64, closed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.tenure
	if old == nil || floor <= old.floor && !old.closed {
		return 0, false
	}
	// Otherwise the refusal stays: that of a tenure which never issued, that of beginNextTenure, or, while the clock is
	// wrong, that of judgeClock.
	if k.view.Load().Claim.EverConfirmed && !old.closed && !k.skew.rounds.Wrong() {
		k.refuseLocked(Refusal{Phase: Confirming, Cause: CauseLeaseExpiredAway})
	}
	old.closed = true
	end = k.closeTenure(old)
	return end, true // the next tenure begins above it (C26)
}

// closeTenure closes a tenure, and returns the end of what it has issued, Unix ms.
func (k *keeper) closeTenure(t *tenure) int64 {
	end := k.layout.Start(t.gen.Close())
	k.cfg.Trace.Step("ended", "worker", t.Worker, "end", end)
	return end
}

// leaseLeftS returns how many seconds are left until a claim's lease bound, for the log.
func (n *Node) leaseLeftS(c coordinator.Claim) float64 {
	return ms(c.LeaseUntil - n.now()).Round(time.Second).Seconds()
}
