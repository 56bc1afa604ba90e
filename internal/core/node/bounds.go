package node

import (
	"context"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
)

// extendLoop keeps the reserved bound on the local disk ahead of the clock until the context ends. It also starts a
// tenure that waits for its floor, since the keeper may be waiting for ZooKeeper at that moment.
func (n *Node) extendLoop(ctx context.Context) {
	timer := time.NewTimer(n.cfg.extendEvery())
	defer timer.Stop()
	last := n.monotonic()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wakeDisk:
		case <-timer.C:
		}
		now := n.monotonic()
		n.turns.extend.Store(now)
		n.addServed(time.Duration(now - last))
		stored := n.extend(0)
		n.turns.extend.Store(n.monotonic()) // a write may take long
		last = now
		n.startServing()
		timer.Reset(n.untilExtend(stored))
	}
}

// retryDisk is the pause before a failed write to the disk is retried. It is short because the
// node may be refusing until the write succeeds.
const retryDisk = 100 * time.Millisecond

// untilExtend returns the time to the next extension. stored reports whether the last one was written to the disk.
func (n *Node) untilExtend(stored bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	every := n.cfg.extendEvery()
	switch {
	case n.disk.err != nil:
		return min(every, retryDisk)
	case stored && n.shortOfBound() > every:
		return 0 // storing it took long, or the clock leapt: extend again
	case n.phase() == Waiting && n.tenure != nil:
		return min(every, max(ms(n.tenure.floor-n.now()), time.Millisecond))
	}
	return n.cfg.Pulse.Until(every)
}

// addServed adds to the time that the node has served, if it serves.
func (n *Node) addServed(elapsed time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serving.Load() != nil {
		n.served += elapsed
	}
}

// extend raises the reserved bound (ReservedUntil), makes it durable, and only then lets the
// generator use it (C5). The clock is about to go forward by ahead. extend reports whether a bound was stored.
func (n *Node) extend(ahead time.Duration) (stored bool) {
	n.saveMu.Lock()
	defer n.saveMu.Unlock()
	rec, due := n.extension(ahead)
	if !due {
		return false
	}
	gen, err := n.writeRecord(rec)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.noteDisk(err)
	if err != nil {
		return false
	}
	n.generation, n.reservedUntil = gen, rec.Claim.ReservedUntil
	n.applyBounds()
	if t := n.tenure; t != nil { // requests do this as well, but an idle node must also take a fresh slot
		n.wakeIfBehind(t.gen.Behind())
	}
	return true
}

// extension returns the local record with the next reserved bound. due is false if the bound must stay.
func (n *Node) extension(ahead time.Duration) (rec LocalRecord, due bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, v := n.tenure, n.view.Load()
	if t == nil || !v.Claim.EverConfirmed || n.skew.rounds.Wrong() || n.phase() == Stopping {
		return LocalRecord{}, false
	}
	//mutant:c9-record-over-a-pending-grant by TestOldTenureIsReportedDuringWorkerChange -> if false {
	if v.Next != nil { // the record must keep the grant that is pending (C9)
		return LocalRecord{}, false
	}
	rec = n.record(v.Claim)
	now := n.now() + ahead.Milliseconds()
	rec.Claim.ReservedUntil = timeguard.NextReserved(n.reservedUntil, now, v.Claim.LeaseUntil, n.window())
	//mutant:c5-not-durable by sim -> n.reservedUntil = rec.Claim.ReservedUntil; n.applyBounds(); return rec, true
	return rec, true
}

// window returns how far ahead of the clock the reserved bound is kept: by Config.Reserve
// beyond what may be borrowed. mu is held.
func (n *Node) window() time.Duration { return n.cfg.Reserve + n.borrow }

// shortOfBound returns how much higher the reserved bound could be now, by the clock and the
// lease bound. It is negative if the clock went back. mu is held.
func (n *Node) shortOfBound() time.Duration {
	return ms(min(n.now()+n.window().Milliseconds(), n.view.Load().Claim.LeaseUntil) - n.reservedUntil)
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

// publish makes what coord holds now count, for IDs and for the next local record.
func (k *keeper) publish() {
	k.mu.Lock()
	was, is := k.view.Load(), k.coord.View()
	k.view.Store(is)
	k.applyBounds()
	if k.shortOfBound() > k.cfg.extendEvery() {
		wake(k.wakeDisk) // the lease bound held the reserved bound back, and has moved on
	}
	confirmed := was.Stage != coordinator.Confirmed && is.Stage == coordinator.Confirmed
	k.confirmed = k.confirmed || confirmed
	k.mu.Unlock()
	if confirmed || was.Claim.Incarnation != is.Claim.Incarnation {
		k.cfg.WakeSequences() // after a loss of data, sequences wait for a heartbeat (S24)
	}
}
