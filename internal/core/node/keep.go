package node

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// keeper acquires a slot and holds it. Its methods run on the goroutine of the method keep. Node.Run calls the method
// stop once keep has returned.
type keeper struct {
	// coord holds the slot. Its Met may be called from any goroutine.
	coord *coordinator.Coordinator
	// startSlack lengthens the wait for the clock that checkFloor allows. It is 0, or limits.BoundSlack if one copy of
	// the local record was damaged: localcache has then raised the reserved bound by as much.
	startSlack time.Duration
	// agreed is the reading of this clock in the last comparison, if there were voters and most did not find the clock
	// wrong. Otherwise it is zero.
	agreed coordinator.Reading
	// warnedAt is the time of the last log line about a clock difference or a leap, monotonic ns. 0: never.
	warnedAt int64
	// expired: the log has a line that the lease has expired, and no round has succeeded since.
	expired bool
	// fencedAt is the time at which the node was last fenced, monotonic ns. 0: never.
	fencedAt int64
	// toRelease are the slots that were left after rollbacks.
	toRelease []oldSlot

	// Node has what the keeper shares with extendLoop and with callers. Node.mu guards its state.
	*Node
}

// keep acquires a slot and holds it until the context or an error ends the node. It reports to ZooKeeper every
// heartbeat, and sooner when something wakes it or is due: see sleep and untilNext. A node that is fenced registers as
// a new one: see afterFence.
func (k *keeper) keep(ctx context.Context) error {
	a, err := k.firstAttempt()
	if err != nil {
		return err
	}
	if err := k.acquire(ctx, a, k.cfg.StartTimeout); err != nil {
		return err
	}
	for {
		err := k.round(ctx)
		if fence, ok := errors.AsType[*coordinator.FencedError](err); ok {
			err = k.afterFence(ctx, fence)
		} else if err == nil {
			err = k.sleep(ctx, k.untilNext(), k.wakeKeeper)
		}
		if err != nil {
			return err
		}
	}
}

// round sends a heartbeat, lets the tenure issue if it may, releases old slots, and looks whether the clock went back.
//
// It returns a *coordinator.FencedError, the context's error, what rotateIfBehind fails with, and store.ErrLocalSession
// if the node never confirmed a worker. Other failures are only noted: the node serves on within its lease.
func (k *keeper) round(ctx context.Context) error {
	k.turns.keep.Store(k.monotonic())
	err := k.beat(ctx)
	if _, fenced := errors.AsType[*coordinator.FencedError](err); fenced {
		return err
	}
	k.publish() // a grant that may be pending, for the next local record, and the peers seen, for named sequences
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, store.ErrLocalSession) && !k.coord.Claim().EverConfirmed {
		return err // a new node does not start with a ZooKeeper that cannot show who is connected
	}
	k.noteRound(err)
	k.startServing()
	if err := k.releaseOld(ctx); err != nil {
		return err
	}
	return k.rotateIfBehind(ctx)
}

// lease returns how far ahead of the clock the next write pushes the lease bound. It is 0 while
// the clock counts as wrong: the bound stays where it is.
func (k *keeper) lease() time.Duration {
	s := k.peek()
	if s.skew.rounds.Wrong() {
		return 0
	}
	return timeguard.Lease(ms(s.Cluster.LeaseMs), s.served)
}

// beat sends one heartbeat and applies its result. Then it shows that the node is connected, and compares clocks.
//
// When the slot has just been confirmed, the claim is saved to the disk before its new lease bound is used. The floor
// is higher after the first confirmation, and if the lease had run out. A new tenure then begins there, above all that
// the old one has issued.
func (k *keeper) beat(ctx context.Context) error {
	k.passLoss()
	s := k.peek()
	report := coordinator.Report{Lease: k.lease(), Generation: s.generation, Phase: k.reportedPhase(s.phase),
		Agreed: k.agreed}
	callCtx, cancel := context.WithTimeout(ctx, k.cfg.RoundTimeout)
	defer cancel()
	began := k.monotonic()
	beat, err := k.coord.Heartbeat(callCtx, report)
	k.meter.heartbeats.add(k.monotonic()-began, err)
	if beat.Restored {
		k.cfg.WakeSequences()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	k.noteBeat(beat)
	end, closed := k.closeBelowFloor(beat.Floor)
	if err := k.coord.Accept(beat, end); err != nil {
		return err
	}
	k.publish()
	if closed {
		if err := k.beginNextTenure(); err != nil {
			return err
		}
	}
	if err := k.coord.EnsureLiveLock(callCtx); err != nil {
		return err
	}
	if err := k.coord.AskPeers(callCtx); err != nil {
		return err
	}
	peers, err := k.coord.ReadPeerClocks(callCtx, k.coord.Claim().Worker, beat)
	if err != nil {
		return err
	}
	k.judgeClock(beat.Clock, peers)
	return nil
}

// reportedPhase returns the phase for the record in ZooKeeper. A node that has a tenure in serving but would refuse a
// request reports Refusing, because readers of the record do not ask it.
func (k *keeper) reportedPhase(p Phase) string {
	if p == Serving && k.WhyNoIDs() != nil {
		p = Refusing
	}
	return string(p)
}

// passLoss tells the coordinator of the loss of data that named sequences have found.
func (k *keeper) passLoss() {
	k.mu.Lock()
	l := k.loss
	k.loss = nil
	k.mu.Unlock()
	if l != nil {
		k.coord.AnnounceFound(l.known, l.found, l.claim)
	}
}

// noteBeat records what a heartbeat found in ZooKeeper.
func (k *keeper) noteBeat(beat coordinator.Beat) {
	claim := k.coord.Claim()
	if beat.Restored {
		k.log.Warn("restored the record that ZooKeeper lost", "worker", claim.Worker, "term", claim.Term)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.view.Load().Stage == coordinator.Alone {
		k.say(k.log.Info, "reported the restart to ZooKeeper", "worker", claim.Worker, "term", claim.Term)
	}
	if beat.FrozenUntil != 0 && k.reports.frozen == 0 {
		reason := "ZooKeeper lost data"
		if beat.FrozenBy != "" {
			reason = "operator " + beat.FrozenBy + " froze it"
		}
		k.say(k.log.Warn, "registration is frozen", "cause", TroubleFrozen, "reason", reason,
			"until", time.UnixMilli(beat.FrozenUntil).UTC())
	}
	if beat.FrozenUntil == 0 && k.reports.frozen != 0 {
		k.say(k.log.Info, "registration is not frozen any more")
	}
	k.reports.frozen, k.reports.beatAt = beat.FrozenUntil, k.now()
}

// noteRound records the result of a round. It logs when rounds begin to fail, when the lease
// expires meanwhile, and when rounds succeed again.
func (k *keeper) noteRound(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	claim := k.view.Load().Claim
	expired := k.now() >= claim.LeaseUntil
	switch {
	case errors.Is(err, store.ErrLocalSession): // the heartbeat itself was acknowledged
		if k.reports.err == nil {
			k.say(k.log.Error, "could not show that this node is connected, so other nodes and operators see it as "+
				"disconnected",
				"cause", TroubleLocalSession, "error", err)
		}
	case err != nil && k.reports.err == nil && expired:
		k.say(k.log.Warn, "heartbeat failed, and no lease runs", "error", err)
	case err != nil && k.reports.err == nil:
		k.say(k.log.Warn, "heartbeat failed, serving until the lease expires", "cause", troubleOf(err),
			"error", err, "lease_left_s", k.leaseLeftS(claim))
	case err != nil && expired && !k.expired:
		k.say(k.log.Error, "the lease has expired: refusing until ZooKeeper answers", "cause", CauseLeaseExpired,
			"worker", claim.Worker, "error", err)
	case err == nil && k.reports.err != nil:
		k.say(k.log.Info, "heartbeats succeed again")
	}
	k.reports.err, k.expired = err, err != nil && expired
}

// sleep waits for d, until ZooKeeper is reached again, or for a value of woken, which may be nil. If the context ends
// first, sleep returns its error.
func (k *keeper) sleep(ctx context.Context, d time.Duration, woken <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-woken:
	case <-k.cfg.Reconnected:
	case <-timer.C:
	}
	return nil
}

// untilNext returns the time to the next heartbeat, 1 ms or more. The heartbeat comes sooner when the confirming time
// ends, while the node waits for its peers, and after a round that failed.
func (k *keeper) untilNext() time.Duration {
	next := k.cfg.Pulse.Until(k.cfg.Heartbeat)
	s := k.peek()
	if left := time.Duration(k.coord.ConfirmAt() - k.elapsed.AtLeast()); s.Stage != coordinator.Confirmed && left > 0 {
		next = min(next, left)
	}
	if wait := k.coord.AskAgainIn(); wait > 0 {
		next = min(next, wait)
	}
	if s.reports.err != nil {
		next = min(next, k.cfg.Heartbeat/2) // else one heartbeat that fails would be a gap
	}
	return max(next, time.Millisecond)
}
