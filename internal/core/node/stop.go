package node

import (
	"context"
	"errors"

	"github.com/flaked/flaked/coordinator"
)

// stop ends the tenure. It records the end on the disk first, and then in ZooKeeper.
func (k *keeper) stop(ctx context.Context) {
	k.refuse(Stopping, CauseStopping)
	k.mu.Lock()
	t, v := k.tenure, k.view.Load()
	k.mu.Unlock()
	claim := v.Claim
	if t == nil {
		return
	}
	// Nothing was issued at or after end, and nothing will be. end is never below the floor,
	// so it is never below what a predecessor reserved.
	//mutant:c29-stop-only by TestStopEndsRequestsUnderWay -> last, _ := t.gen.Last(); end := k.layout.Start(last+1)
	end := k.closeTenure(t)
	end = max(end, claim.Floor) // above it if the lease had run out, and the next tenure could not begin (C26)
	if v.Next != nil {
		// An attempt to take another slot was interrupted. The local record is about that slot, and needs no change.
		k.log.Warn("stopped during a change of workers, the old worker is free after its lease expires",
			"worker", t.Worker)
		return
	}
	if k.releasesAtStop() && k.release(ctx, end) {
		return
	}
	k.saveMu.Lock()
	k.mu.Lock()
	rec := k.record(claim)
	rec.Claim.ReservedUntil, rec.Stopped = end, true
	k.mu.Unlock()
	gen, err := k.writeRecord(rec)
	k.saveMu.Unlock()
	if err != nil {
		k.log.Error("could not record the stop on disk, the next start may wait a few seconds", "error", err)
		if err := k.coord.LookForLoss(ctx); err != nil { // nobody else may notice a loss (C20)
			k.noteStopError("could not look whether ZooKeeper has lost data", err)
		}
		return
	}
	if err := k.coord.Stop(ctx, end, gen); err != nil {
		k.noteStopError("could not report the stop to ZooKeeper, the worker shows as disconnected until its lease "+
			"expires", err)
		return
	}
	k.log.Info("stopped, this node keeps the worker until its lease expires", "worker", t.Worker, "term", claim.Term)
}

// noteStopError logs what a stop could not do. If it has found a clone of this process, which goes on, noteStopError
// also invalidates the local record (C33).
func (k *keeper) noteStopError(what string, err error) {
	fence, cloned := errors.AsType[*coordinator.FencedError](err)
	if !cloned {
		k.log.Warn(what, "worker", k.view.Load().Claim.Worker, "error", err)
		return
	}
	k.log.Error("stopped, this node leaves the worker to another process", "cause", CauseLostWorker,
		"worker", fence.Worker, "reason", fence.Reason)
	//mutant:c33-stopped-clone-is-resumed by TestStoppedCloneIsNotResumed -> _ = k.forget
	k.forget()
}

// releasesAtStop reports whether the node releases its worker when it stops.
func (n *Node) releasesAtStop() bool { return n.cfg.ReleaseOnExit || n.peek().drain.release }

// release releases the slot. It first makes the local record invalid, durably, because another node may take the slot
// at once after that. It returns false if the record could not be made invalid: the slot is not released then.
func (k *keeper) release(ctx context.Context, end int64) bool {
	claim := k.view.Load().Claim
	//mutant:c29-released-before-the-file-is-invalid by sim -> if err := error(nil); err != nil {
	if err := k.invalidate(); err != nil { // before another node can have the worker (C29)
		k.log.Error("could not release the worker: the state directory is not writable", "error", err)
		return false
	}
	// Release lowers the lease bound in ZooKeeper, and an older copy of the state file has the higher one. Delete the
	// file: a copy that is written back is then another file, which is not resumed.
	//mutant:c29-released-before-the-file-is-invalid -> if err := error(nil); err != nil {
	if err := k.cfg.Cache.Remove(); err != nil {
		k.log.Warn("could not delete the state file. Do not restore an older copy of it", "error", err)
	}
	if err := k.coord.Release(ctx, end); err != nil {
		k.noteStopError("could not release the worker, it is free after its lease expires", err)
		return true
	}
	k.log.Info("stopped, released the worker", "worker", claim.Worker, "term", claim.Term)
	return true
}
