package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// maxRotations bounds how many fresh slots a node takes within the longest lease.
const maxRotations = 4

// rotateIfBehind takes a fresh slot if a clock that went back would make the node refuse for longer than
// limits.RotateBehind, and for longer than the confirming time, which a fresh slot costs. ZooKeeper and most peers must
// agree with the new time. The old slot is released at the end of what was issued for it. If no fresh slot can be
// acquired, the node waits for its clock.
func (n *Node) rotateIfBehind(ctx context.Context) error {
	old, behind := n.mayRotate()
	if old == nil {
		return nil
	}
	claim := n.view.Load().Claim
	n.log.Warn("the clock went back and ZooKeeper and peers confirm it, acquiring a new worker",
		"behind_ms", behind.Milliseconds(), "worker", claim.Worker)
	callCtx, cancel := context.WithTimeout(ctx, 6*n.cfg.CallTimeout)
	defer cancel()
	var left coordinator.Left
	var confirm time.Duration
	cl, err := coordinator.ReadCluster(callCtx, n.cfg.Store)
	if err == nil {
		left, confirm, err = n.coord.Move(callCtx, cl, n.lease(), n.checkClock)
	}
	if err != nil {
		n.log.Warn("could not acquire a new worker, waiting for the clock to catch up", "error", err)
		n.keepOld(errors.Is(err, store.ErrUnreachable))
		return nil
	}
	n.refuse(Confirming, CauseNewWorker)
	n.keeper.toRelease = append(n.keeper.toRelease, leftSlot{left, n.end(old)})
	if err := n.granted(confirm, "acquired a new worker"); err != nil {
		return err
	}
	n.releaseOld(ctx)
	wake(n.wakeKeeper)
	return ctx.Err()
}

// mayRotate returns the tenure whose clock went back so far that a fresh slot is due, and how long it would refuse. The
// attempt counts from now on. mayRotate returns nil if no slot is due.
func (n *Node) mayRotate() (old *tenure, behind time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	// A tenure that was not published has issued nothing. It waits for its floor.
	if n.held == nil || n.serving.Load() != n.held {
		return nil, 0
	}
	agreed := n.skew.verdict.Verified() && !n.skew.verdict.Wrong() && !n.skew.wrong
	behind = n.refusalDuration(n.held)
	if n.store.err != nil || !agreed || behind <= max(limits.RotateBehind, n.cluster.ConfirmTime()) {
		return nil, 0
	}
	since := n.now() - n.cluster.LeaseMs
	n.rotations = slices.DeleteFunc(n.rotations, func(at int64) bool { return at < since })
	if len(n.rotations) >= maxRotations {
		return nil, 0
	}
	n.rotations = append(n.rotations, n.now())
	return n.held, behind
}

// refusalDuration returns how long a tenure refuses because the clock went back. If rollbacks are
// counted, the tenure may go on while a restart would refuse to wait for the reserved bound.
// Then refusalDuration returns the wait for that bound. mu is held.
func (n *Node) refusalDuration(t *tenure) time.Duration {
	if restart := timeguard.StartWait(n.now(), n.reservedUntil); n.onRollback.Counts() &&
		restart > limits.MaxStartWait {
		return restart
	}
	return t.gen.Behind()
}

// keepOld puts the claim on the old slot back into the local record after a failed attempt at another slot. If the
// record cannot be written, the next extension writes it.
//
// The attempt counts if its answer was lost after a slot had been chosen: ZooKeeper may have
// given that slot to this node. Otherwise one lost answer after the other would take all slots.
func (n *Node) keepOld(unanswered bool) {
	n.mu.Lock()
	v := *n.view.Load()
	changed := v.Next != nil
	if !(changed && unanswered) {
		n.rotations = n.rotations[:max(0, len(n.rotations)-1)] // none was taken
	}
	v.Next = nil
	n.view.Store(&v)
	n.mu.Unlock()
	if !changed {
		return
	}
	if err := n.coord.Save(); err != nil {
		n.log.Warn("could not write the state file, which names a worker that this node never acquired, retrying",
			"error", err)
	}
}

// leftSlot is a slot that must still be released. end is the end of what was issued for it, Unix ms.
type leftSlot struct {
	coordinator.Left
	end int64
}

// releaseOld releases the slots that were left after rollbacks. It retries those that fail at the next heartbeat.
func (n *Node) releaseOld(ctx context.Context) {
	due := n.keeper.toRelease
	n.keeper.toRelease = nil
	for _, d := range due {
		callCtx, cancel := context.WithTimeout(ctx, n.cfg.CallTimeout)
		err := n.coord.ReleaseLeft(callCtx, d.Left, d.end)
		cancel()
		if err == nil {
			n.log.Info("released the old worker", "worker", d.Worker())
			continue
		}
		n.keeper.toRelease = append(n.keeper.toRelease, d)
	}
}
