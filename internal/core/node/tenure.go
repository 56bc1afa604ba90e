package node

import (
	"context"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// tenure is the time for which this process holds one slot. A request may still be using a tenure after another has
// replaced it, so a tenure that has ended must have its generator closed.
type tenure struct {
	coordinator.Owner
	floor   int64 // the first timestamp, above all of earlier holders (C2), Unix ms
	gen     *worker.Generator
	expired bool // its lease had run out, so its generator is closed
}

// beginTenure creates the tenure of the slot. The tenure issues nothing until startServing has put it into serving.
func (k *keeper) beginTenure() error {
	claim := k.coord.Claim()
	if err := k.checkEra(); err != nil {
		return err
	}
	if err := k.checkStart(claim.Floor); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	gen, err := worker.NewGenerator(worker.GeneratorConfig{
		Layout: k.layout, Datacenter: k.cluster.Datacenter, Worker: int64(claim.Worker),
		Floor: k.layout.CeilTick(claim.Floor),
		Clock: k.clock, Rollback: k.onRollback, CountRollbacks: k.onRollback.Counts(), Borrow: k.borrow,
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

// publish makes what coord holds now count, for IDs and for the next local record.
func (k *keeper) publish() {
	k.mu.Lock()
	was, is := k.view.Load(), k.coord.View()
	k.view.Store(is)
	k.applyBounds()
	if k.shortOfBound() > k.cfg.extendEvery() {
		wake(k.wakeDisk) // the lease bound held the reserved bound back, and has moved on
	}
	k.mu.Unlock()
	confirmed := was.Stage != coordinator.Confirmed && is.Stage == coordinator.Confirmed
	if confirmed || was.Claim.Incarnation != is.Claim.Incarnation {
		k.cfg.WakeSequences() // after a loss of data, sequences wait for a heartbeat (S24)
	}
}

// applyBounds lets the generator use the whole ticks below both the reserved bound and the lease bound. mu is held.
func (n *Node) applyBounds() {
	if n.tenure == nil {
		return
	}
	//mutant:c1-no-reserved-bound by sim -> bound := n.view.Load().Claim.LeaseUntil
	bound := min(n.reservedUntil, n.view.Load().Claim.LeaseUntil) // a node issues below both bounds only (C1)
	// The tick of the bound is the next holder's: bounds are rounded down, floors up.
	limit := n.layout.FloorTick(bound)
	if limit > n.tenure.gen.Limit() {
		n.cfg.Trace.Step("bound", "worker", n.tenure.Worker, "limit", n.layout.Start(limit))
	}
	//mutant:c1-no-lease-bound -> _ = limit; n.tenure.gen.Extend(n.layout.FloorTick(n.reservedUntil))
	n.tenure.gen.Extend(limit)
}

// startServing puts the tenure into serving if it may serve and a bound above its floor is on disk. Otherwise
// startServing sets the refusal.
func (n *Node) startServing() {
	n.mu.Lock()
	t, ready := n.tenure, n.mayServe()
	n.unlock()
	if !ready {
		return
	}
	n.extend(0)
	n.mu.Lock()
	defer n.unlock()
	if n.tenure != t || !n.mayServe() { // this took time, and the other loop may have done it
		return
	}
	if n.disk.err != nil && t.gen.Limit() <= n.layout.CeilTick(t.floor) {
		n.refuseLocked(Refusal{Phase: Refusing, Cause: CauseReservedBound})
		return
	}
	n.cfg.Trace.Step("serving", "worker", t.Worker, "floor", t.floor, "now", n.now())
	n.phase = Serving
	n.serving.Store(t)
	n.beginOnce.Do(func() {
		n.servedAt.Store(n.mono())
		close(n.began)
	})
	claim := n.view.Load().Claim
	n.say(n.log.Info, "serving", "worker", t.Worker, "term", claim.Term, "lease_left_s", n.leaseLeftS(claim))
}

// mayServe reports whether the tenure waits to serve, and may. If it waits and may not, mayServe sets the refusal.
// Another refusal stands already while the clock is wrong, and after the lease had run out until a new tenure has
// replaced this one. If the clock is below the floor, mayServe wakes the disk loop, which looks again in time. mu is
// held.
func (n *Node) mayServe() bool {
	t, claim, now := n.tenure, n.view.Load().Claim, n.now()
	switch {
	case t == nil || n.serving.Load() == t || n.phase == Stopping:
		return false
	// Only under a lease that was confirmed (C10). The wall clock is enough here, because the IDs carry it:
	// coordinator.Claim.Leased also asks the boot clock. A lease that expired while the node was disconnected counts
	// again once the slot is confirmed again.
	case !claim.EverConfirmed || now >= claim.LeaseUntil:
		if n.phase != Confirming {
			n.refuseLocked(Refusal{Phase: Confirming, Cause: CauseConfirming})
		}
		return false
	case n.skew.wrong || t.expired:
		return false
	case now < t.floor: // an earlier holder may have used the time before (C2)
		if n.phase != Waiting {
			n.refuseLocked(Refusal{Phase: Waiting, Cause: CauseBelowFloor})
			n.say(n.log.Info, "waiting for the clock to reach the floor", "wait_ms", t.floor-now)
			wake(n.wakeDisk)
		}
		return false
	}
	return true
}

// closeIfExpired closes the tenure if the slot has a higher floor: the lease had run out, and another node may have
// held the slot since. It reports whether it has closed the tenure, now or in a heartbeat that could not begin the next
// one, and returns the end of what that has issued, Unix ms.
func (k *keeper) closeIfExpired(floor int64) (end int64, expired bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.tenure
	if old == nil || floor <= old.floor && !old.expired {
		return 0, false
	}
	if k.view.Load().Claim.EverConfirmed { // else the tenure never issued, and its refusal stays
		k.refuseLocked(Refusal{Phase: Confirming, Cause: CauseLeaseExpiredAway})
	}
	old.expired = true
	end = k.closeTenure(old)
	return end, true // the next tenure begins above it (C26)
}

// closeTenure closes a tenure, and returns the end of what it has issued, Unix ms.
func (k *keeper) closeTenure(t *tenure) int64 {
	end := k.layout.Start(t.gen.Close())
	k.cfg.Trace.Step("ended", "worker", t.Worker, "end", end)
	return end
}

// replace gives up a slot that the node was fenced from, and acquires another one. again: it was fenced just before.
func (k *keeper) replace(ctx context.Context, fence *coordinator.FencedError, again bool) error {
	k.fenced(fence)
	if again { // a fault that persists must not use up one slot after another
		if err := k.sleep(ctx, fencesApart, nil); err != nil {
			return err
		}
	}
	k.becomeNewcomer()
	return k.acquire(ctx, attempt{}, 0)
}

// fencesApart: a node that is fenced twice within this time waits for this time before it registers again.
const fencesApart = 30 * time.Second

// fenced drops the tenure of a slot that this node was fenced from. It invalidates the local record
// too, so that a restart without ZooKeeper does not resume the slot.
func (k *keeper) fenced(err *coordinator.FencedError) {
	what := "fenced: stopped issuing IDs for this worker, registering as a new node"
	if err.Cloned {
		what = "fenced: stopped issuing IDs for this worker, ending this process"
	}
	k.log.Error(what, "cause", CauseLostWorker, "worker", err.Worker, "reason", err.Reason)
	k.refuse(Starting, CauseLostWorker)
	if err.Lost {
		k.cfg.WakeSequences()
	}
	k.mu.Lock()
	if k.tenure != nil {
		k.closeTenure(k.tenure)
		k.tenure = nil
	}
	k.cfg.Trace.Step("fenced", "worker", err.Worker, "lost", err.Lost)
	k.served, k.rotations = 0, nil
	k.skew.wrong, k.rounds = false, timeguard.Rounds{} // registering checks the clock
	k.mu.Unlock()
	//mutant:c19-fenced-worker-is-resumed by TestFencedSlotIsNotResumedAfterRestart -> _ = k.forget
	k.forget() // no restart resumes a worker that was fenced (C19)
}

// forget invalidates the local record. If the disk takes no writes, the node goes on all the
// same: the next start that reaches ZooKeeper finds that the slot is lost.
func (k *keeper) forget() {
	k.saveMu.Lock()
	err := k.invalidate()
	k.saveMu.Unlock()
	if err != nil {
		k.log.Error("could not invalidate the state file, which still names a worker that this node has lost",
			"error", err)
	}
}

// invalidate makes the local record one that no start resumes, durably.
func (k *keeper) invalidate() error {
	err := k.cfg.Cache.Invalidate()
	if err == nil {
		k.cfg.Trace.Step("invalidated")
	}
	return err
}

// leaseLeftS returns how many seconds are left until a claim's lease bound, for the log.
func (n *Node) leaseLeftS(c coordinator.Claim) float64 {
	return ms(c.LeaseUntil - n.now()).Round(time.Second).Seconds()
}
