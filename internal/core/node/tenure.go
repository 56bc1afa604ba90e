package node

import (
	"time"

	"github.com/flaked/flaked/coordinator"
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
	if err := k.checkFloor(claim.Floor); err != nil {
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
	t, may := n.tenure, n.serveOrRefuse()
	n.unlock()
	if !may {
		return
	}
	n.extend(0)
	n.mu.Lock()
	defer n.unlock()
	if n.tenure != t || !n.serveOrRefuse() { // this took time, and the other loop may have done it
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
		n.servedAt.Store(n.monotonic())
		close(n.began)
	})
	claim := n.view.Load().Claim
	n.say(n.log.Info, "serving", "worker", t.Worker, "term", claim.Term, "lease_left_s", n.leaseLeftS(claim))
}

// serveOrRefuse returns what mayServe decides, and sets the refusal if the tenure must not serve. While the clock is
// below the floor, it wakes the disk loop, which looks again when the clock has reached the floor. mu is held.
func (n *Node) serveOrRefuse() (may bool) {
	now := n.now()
	may, refusal := n.mayServe(now)
	if refusal.Phase == "" || refusal.Phase == n.phase {
		return may
	}
	n.refuseLocked(refusal)
	if refusal.Phase == Waiting {
		n.say(n.log.Info, "waiting for the clock to reach the floor", "wait_ms", n.tenure.floor-now)
		wake(n.wakeDisk)
	}
	return may
}

// mayServe reports whether the tenure waits to serve, and may at now, Unix ms. If it waits and must not serve, mayServe
// returns the refusal, or the zero Refusal if the present one stays. It changes nothing. mu is held.
func (n *Node) mayServe(now int64) (may bool, refusal Refusal) {
	t, claim := n.tenure, n.view.Load().Claim
	switch {
	case t == nil || n.serving.Load() == t || n.phase == Stopping:
		return false, Refusal{}
	// Only under a lease that was confirmed (C10). The wall clock is enough here, because the IDs carry it:
	// coordinator.Claim.Leased also asks the boot clock. A lease that expired while the node was disconnected counts
	// again once the slot is confirmed again.
	case !claim.EverConfirmed || now >= claim.LeaseUntil:
		return false, Refusal{Phase: Confirming, Cause: CauseConfirming}
	// judgeClock or closeIfExpired has set the refusal. The latter stays until the next tenure has begun.
	case n.skew.wrong || t.expired:
		return false, Refusal{}
	case now < t.floor: // an earlier holder may have used the time before (C2)
		return false, Refusal{Phase: Waiting, Cause: CauseBelowFloor}
	}
	return true, Refusal{}
}

// closeIfExpired closes the tenure if the slot has a higher floor: the lease had run out, and another node may have
// held the slot since. It reports whether it has closed the tenure, now or in a heartbeat that could not begin the next
// one. end is the end of what the tenure has issued, Unix ms.
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

// leaseLeftS returns how many seconds are left until a claim's lease bound, for the log.
func (n *Node) leaseLeftS(c coordinator.Claim) float64 {
	return ms(c.LeaseUntil - n.now()).Round(time.Second).Seconds()
}
