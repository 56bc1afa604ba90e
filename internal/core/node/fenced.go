package node

import (
	"context"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
)

// replace gives up a slot that the node has lost, and acquires another one. again: it has lost one just before.
func (n *Node) replace(ctx context.Context, lost *coordinator.FencedError, again bool) error {
	n.fenced(lost)
	if again { // a fault that persists must not use up one slot after another
		if err := n.sleep(ctx, fencesApart, nil); err != nil {
			return err
		}
	}
	return n.acquire(ctx, n.newcomer(), 0)
}

// fencesApart: a node that is fenced twice within this time waits for this time before it registers again.
const fencesApart = 30 * time.Second

// fenced drops the tenure of a slot that this node has lost. It invalidates the local record
// too, so that a restart without ZooKeeper does not resume the slot.
func (n *Node) fenced(err *coordinator.FencedError) {
	n.log.Error("fenced: stopped issuing IDs for this worker, registering as a new node", "cause", CauseLostWorker,
		"worker", err.Worker, "reason", err.Reason)
	n.refuse(Starting, CauseLostWorker)
	if err.Lost {
		n.cfg.WakeSequences()
	}
	n.mu.Lock()
	if n.tenure != nil {
		n.end(n.tenure)
		n.tenure = nil
	}
	n.cfg.Trace.Step("fenced", "worker", err.Worker, "lost", err.Lost)
	n.served, n.rotations = 0, nil
	n.skew.wrong, n.keeper.rounds = false, timeguard.Rounds{} // registering checks the clock
	n.mu.Unlock()
	//mutant:c19-fenced-worker-is-resumed by TestFencedSlotIsNotResumedAfterRestart -> _ = n.forget
	n.forget() // no restart resumes a worker that was fenced (C19)
}

// forget invalidates the local record. If the disk takes no writes, the node goes on all the
// same: the next start that reaches ZooKeeper finds that the slot is lost.
func (n *Node) forget() {
	n.saveMu.Lock()
	err := n.invalidate()
	n.saveMu.Unlock()
	if err != nil {
		n.log.Error("could not invalidate the state file, which still names a worker that this node has lost",
			"error", err)
	}
}

// invalidate makes the local record one that no start resumes, durably.
func (n *Node) invalidate() error {
	err := n.cfg.Cache.Invalidate()
	if err == nil {
		n.cfg.Trace.Step("invalidated")
	}
	return err
}
