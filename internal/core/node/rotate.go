package node

import (
	"cmp"
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
func (k *keeper) rotateIfBehind(ctx context.Context) error {
	old, behind := k.beginRotation()
	if old == nil {
		return nil
	}
	claim := k.view.Load().Claim
	k.log.Warn("the clock went back and ZooKeeper and peers confirm it, acquiring a new worker",
		"behind_ms", behind.Milliseconds(), "worker", claim.Worker)
	callCtx, cancel := context.WithTimeout(ctx, 6*k.cfg.RoundTimeout)
	defer cancel()
	var leaving coordinator.OldSlot
	var confirm time.Duration
	cl, err := coordinator.ReadCluster(callCtx, k.cfg.Store)
	if err == nil {
		leaving, confirm, err = k.coord.Register(callCtx, cl, k.lease(), k.checkClock)
	}
	if err != nil {
		k.log.Warn("could not acquire a new worker, waiting for the clock to catch up", "error", err)
		k.undoRotation(errors.Is(err, store.ErrUnreachable))
		return nil
	}
	k.refuse(Confirming, CauseNewWorker)
	k.toRelease = append(k.toRelease, oldSlot{leaving, k.closeTenure(old)})
	if err := k.holdSlot(confirm, "acquired a new worker"); err != nil {
		return err
	}
	wake(k.wakeKeeper)
	return cmp.Or(k.releaseOld(ctx), ctx.Err())
}

// beginRotation counts an attempt at a fresh slot, if the clock went back so far that one is due. It returns the tenure
// to leave, and how long that would refuse. It returns nil if no fresh slot is due.
func (k *keeper) beginRotation() (old *tenure, behind time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A tenure that does not serve yet has issued nothing. It waits for its floor.
	if k.tenure == nil || k.serving.Load() != k.tenure {
		return nil, 0
	}
	agreed := k.skew.verdict.Verified() && !k.skew.verdict.Wrong() && !k.skew.rounds.Wrong()
	behind = k.refusalDuration(k.tenure)
	if k.reports.err != nil || !agreed || behind <= max(limits.RotateBehind, k.view.Load().Cluster.ConfirmTime()) {
		return nil, 0
	}
	since := k.now() - k.view.Load().Cluster.LeaseMs
	k.rotations = slices.DeleteFunc(k.rotations, func(at int64) bool { return at < since })
	if len(k.rotations) >= maxRotations {
		return nil, 0
	}
	k.rotations = append(k.rotations, k.now())
	return k.tenure, behind
}

// refusalDuration returns how long a tenure refuses because the clock went back. If rollbacks are
// counted, the tenure may go on while a restart would refuse to wait for the reserved bound.
// Then refusalDuration returns the wait for that bound. mu is held.
func (k *keeper) refusalDuration(t *tenure) time.Duration {
	if restart := timeguard.StartWait(k.now(), k.reservedUntil); k.onRollback.Counts() &&
		restart > limits.MaxStartWait {
		return restart
	}
	return t.gen.Behind()
}

// undoRotation ends an attempt at a fresh slot that has failed. It puts the claim on the old slot back into the local
// record. If the record cannot be written, the next extension writes it.
//
// The attempt counts if its answer was lost after a slot had been chosen: ZooKeeper may have
// given that slot to this node. Otherwise one lost answer after the other would take all slots.
func (k *keeper) undoRotation(unanswered bool) {
	k.mu.Lock()
	v := *k.view.Load()
	changed := v.Next != nil
	if !(changed && unanswered) {
		k.rotations = k.rotations[:max(0, len(k.rotations)-1)] // none was taken
	}
	v.Next = nil
	k.view.Store(&v)
	k.mu.Unlock()
	if !changed {
		return
	}
	if err := k.coord.Save(); err != nil {
		k.log.Warn("could not write the state file, which names a worker that this node never acquired, retrying",
			"error", err)
	}
}

// oldSlot is a slot that must still be released. end is the end of what was issued for it, Unix ms.
type oldSlot struct {
	coordinator.OldSlot
	end int64
}

// releaseOld releases the slots that were left after rollbacks. It retries those that fail at the next heartbeat. If a
// clone of this process has written one, releaseOld returns the *coordinator.FencedError, which ends the process (C33).
func (k *keeper) releaseOld(ctx context.Context) error {
	due := k.toRelease
	k.toRelease = nil
	for _, d := range due {
		callCtx, cancel := context.WithTimeout(ctx, k.cfg.RoundTimeout)
		err := k.coord.ReleaseOld(callCtx, d.OldSlot, d.end)
		cancel()
		if err == nil {
			k.log.Info("released the old worker", "worker", d.Worker())
			continue
		}
		if _, cloned := errors.AsType[*coordinator.FencedError](err); cloned {
			return err
		}
		k.toRelease = append(k.toRelease, d)
	}
	return nil
}
