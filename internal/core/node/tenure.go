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
	floor  int64 // the first timestamp, above all of earlier holders (C2), Unix ms
	gen    *worker.Generator
	lapsed bool // its lease had run out, so its generator is closed
}

// beginTenure creates the tenure of the slot. The tenure issues nothing until startServing has put it into serving.
func (n *Node) beginTenure() error {
	claim := n.coord.Claim()
	if err := n.checkEra(); err != nil {
		return err
	}
	if err := n.checkStart(claim.Floor); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	gen, err := worker.NewGenerator(worker.GeneratorConfig{
		Layout: n.layout, Datacenter: n.cluster.Datacenter, Worker: int64(claim.Worker),
		Floor: n.layout.CeilTick(claim.Floor),
		Clock: n.clock, Rollback: n.onRollback, CountRollbacks: n.onRollback.Counts(), Borrow: n.borrow,
		SequenceStart: n.sequenceStart, SegmentStart: n.segmentStart, Rand: n.cfg.Rand, Counts: &n.meter.worker,
	})
	if err != nil {
		return err
	}
	if next := n.view.Load().Next; next != nil {
		n.reservedUntil = next.ReservedUntil
	}
	n.follow()
	n.cfg.Trace.Step("tenure", "worker", claim.Worker, "floor", claim.Floor)
	n.tenure = &tenure{Owner: claim.Owner, floor: claim.Floor, gen: gen}
	return nil
}

// publish makes what coord holds now count for IDs. The next extension of the reserved bound stores its claim.
func (n *Node) publish() {
	n.mu.Lock()
	was := n.view.Load()
	n.follow()
	is := n.view.Load()
	n.applyBounds()
	if n.shortOfBound() > n.cfg.extendEvery() {
		wake(n.wakeDisk) // the lease bound held the reserved bound back, and has moved on
	}
	n.mu.Unlock()
	confirmed := was.Stage != coordinator.Confirmed && is.Stage == coordinator.Confirmed
	if confirmed || was.Claim.Incarnation != is.Claim.Incarnation {
		n.cfg.WakeSequences() // after a loss of data, sequences wait for a heartbeat (S24)
	}
}

// follow makes what coord holds now count, for IDs and for the next local record. mu is held.
func (n *Node) follow() { n.view.Store(n.coord.View()) }

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

// startServing puts the tenure into serving if it may serve and a bound above its floor is on disk. Otherwise startServing
// sets the refusal.
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

// mayServe reports whether the tenure waits to serve, and may. If it waits and may not, mayServe sets the refusal. Another
// refusal stands already while the clock is wrong, and after the lease had run out until a new tenure has replaced this
// one. If the clock is below the floor, mayServe wakes the disk loop, which looks again in time. mu is held.
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
	case n.skew.wrong || t.lapsed:
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

// closeIfLapsed closes the tenure if the slot has a higher floor: the lease had run out, and another node may have
// held the slot since. It reports whether it has closed the tenure, now or in a heartbeat that could not begin the next
// one, and returns the end of what that has issued, Unix ms.
func (n *Node) closeIfLapsed(floor int64) (end int64, lapsed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.tenure
	if old == nil || floor <= old.floor && !old.lapsed {
		return 0, false
	}
	if n.view.Load().Claim.EverConfirmed { // else the tenure never issued, and its refusal stays
		n.refuseLocked(Refusal{Phase: Confirming, Cause: CauseLeaseExpiredAway})
	}
	old.lapsed = true
	end = n.end(old)
	return end, true // the next tenure begins above it (C26)
}

// end closes a tenure, and returns the end of what it has issued, Unix ms.
func (n *Node) end(t *tenure) int64 {
	end := n.layout.Start(t.gen.Close())
	n.cfg.Trace.Step("ended", "worker", t.Worker, "end", end)
	return end
}

// leaseLeftS returns how many seconds are left until a claim's lease bound, for the log.
func (n *Node) leaseLeftS(c coordinator.Claim) float64 {
	return ms(c.LeaseUntil - n.now()).Round(time.Second).Seconds()
}
