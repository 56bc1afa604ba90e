package node

import (
	"context"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
)

// A node that was fenced issues nothing more for its worker, and no restart resumes the worker (C19).

// fencesApart: a node that is fenced twice within this time waits for this time before it registers again.
const fencesApart = 30 * time.Second

// afterFence gives up the slot that the node was fenced from, and acquires another one. A clone ends instead, and
// afterFence returns the fence: the process must keep no values of sequences (C33).
func (k *keeper) afterFence(ctx context.Context, fence *coordinator.FencedError) error {
	now, last := k.monotonic(), k.fencedAt
	k.fencedAt = now
	k.dropTenure(fence)
	if fence.Cloned {
		return fence
	}
	k.becomeNewcomer()
	if last != 0 && now-last < int64(fencesApart) { // a fault that persists must not use up one slot after another
		if err := k.sleep(ctx, fencesApart, nil); err != nil {
			return err
		}
	}
	return k.acquire(ctx, attempt{}, 0)
}

// dropTenure ends the tenure of a slot that this node was fenced from. It invalidates the local record, too, so that a
// restart without ZooKeeper does not resume the slot.
func (k *keeper) dropTenure(fence *coordinator.FencedError) {
	what := "fenced: stopped issuing IDs for this worker, registering as a new node"
	if fence.Cloned {
		what = "fenced: stopped issuing IDs for this worker, ending this process"
	}
	k.log.Error(what, "cause", CauseLostWorker, "worker", fence.Worker, "reason", fence.Reason)
	k.refuse(Starting, CauseLostWorker)
	if fence.Lost {
		k.cfg.WakeSequences()
	}
	k.mu.Lock()
	if k.tenure != nil {
		k.closeTenure(k.tenure)
		k.tenure = nil
	}
	k.cfg.Trace.Step("fenced", "worker", fence.Worker, "lost", fence.Lost)
	k.served, k.rotations = 0, nil
	k.skew.rounds = timeguard.Rounds{} // registering checks the clock
	k.mu.Unlock()
	//mutant:c19-fenced-worker-is-resumed by TestFencedSlotIsNotResumedAfterRestart -> _ = k.forget
	k.forget() // no restart resumes a worker that was fenced (C19)
}

// forget invalidates the local record. If the disk takes no writes, the node goes on all the same: the next start that
// reaches ZooKeeper finds that the slot is lost.
func (k *keeper) forget() {
	if err := k.invalidate(); err != nil {
		k.log.Error("could not invalidate the state file, which still names a worker that this node has lost",
			"error", err)
	}
}

// invalidate makes the local record one that no start resumes, durably.
func (k *keeper) invalidate() error {
	k.saveMu.Lock()
	defer k.saveMu.Unlock()
	err := k.cfg.Cache.Invalidate()
	if err == nil {
		k.cfg.Trace.Step("invalidated")
	}
	return err
}
