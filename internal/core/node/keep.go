package node

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// keep acquires a slot and holds it until the context or an error ends the node. It reports to
// ZooKeeper every heartbeat, when ZooKeeper is reached again, and when the confirming time is
// over. A node that is fenced registers as a new one.
func (n *Node) keep(ctx context.Context) error {
	a, err := n.begin()
	if err != nil {
		return err
	}
	if err := n.acquire(ctx, a, n.cfg.StartTimeout); err != nil {
		return err
	}
	fencedAt := int64(math.MinInt64 / 2)
	for {
		err := n.round(ctx)
		if fenced, ok := errors.AsType[*coordinator.FencedError](err); ok {
			last := fencedAt
			fencedAt = n.mono()
			err = n.replace(ctx, fenced, time.Duration(fencedAt-last) < fencesApart)
		} else if err == nil {
			err = n.sleep(ctx, n.untilNext(), n.wakeKeeper)
		}
		if err != nil {
			return err
		}
	}
}

// round sends a heartbeat, lets the tenure issue if it may, releases old slots, and looks whether the clock went back. It
// returns a *coordinator.FencedError, the context's error, or nil, and for a node that never confirmed a worker
// store.ErrLocalSession. Other failures are only noted: the node serves on within its lease.
func (n *Node) round(ctx context.Context) error {
	n.turns.keep.Store(n.mono())
	err := n.beat(ctx)
	if _, fenced := errors.AsType[*coordinator.FencedError](err); fenced {
		return err
	}
	if err != nil {
		n.publish() // a grant may be pending now, and must be in the next local record
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, store.ErrLocalSession) && !n.coord.Claim().EverConfirmed {
		return err // a new node does not start with a ZooKeeper that cannot show who is connected
	}
	n.noteStore(err)
	n.startServing()
	n.releaseOld(ctx)
	return n.rotateIfBehind(ctx)
}

// beat sends one heartbeat and applies its result. Then it shows that the node is connected, and compares clocks.
//
// When the slot has just been confirmed, the claim is saved to the disk before its new lease bound is used. A higher
// floor means that the lease had run out: a new tenure begins there, above all that the old one has issued.
func (n *Node) beat(ctx context.Context) error {
	n.passLoss()
	s := n.peek()
	report := coordinator.Report{Lease: n.lease(), Generation: s.generation, State: n.stateFor(s.phase),
		Agreed: s.skew.agreed}
	callCtx, cancel := context.WithTimeout(ctx, n.cfg.CallTimeout)
	defer cancel()
	began := n.mono()
	beat, err := n.coord.Heartbeat(callCtx, report)
	n.meter.heartbeats.add(n.mono()-began, err)
	if beat.Restored {
		n.cfg.WakeSequences()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	n.noteBeat(beat)
	end, lapsed := n.closeIfLapsed(beat.Floor)
	if err := n.coord.Accept(beat, end); err != nil {
		return err
	}
	n.publish()
	if lapsed {
		if err := n.beginTenure(); err != nil {
			return err
		}
	}
	if err := n.coord.Show(callCtx); err != nil {
		return err
	}
	return n.judgeClock(callCtx, beat.Clock)
}

// stateFor returns what the record in ZooKeeper says of a phase. Other nodes' pages do not ask this node,
// so the record says that it refuses, and not why.
func (n *Node) stateFor(p Phase) string {
	if p == Serving && n.Issues() != nil {
		p = Refusing
	}
	return string(p)
}

// passLoss tells the coordinator of the loss of data that named sequences have found.
func (n *Node) passLoss() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.loss != nil {
		claim := n.view.Load().Claim
		n.loss.MayRecreate, n.loss.LeaseUntil = claim.EverConfirmed, claim.LeaseUntil
		n.coord.Note(*n.loss)
		n.loss = nil
	}
}

// noteBeat records what a heartbeat found in ZooKeeper.
func (n *Node) noteBeat(beat coordinator.Beat) {
	claim, used := n.coord.Claim(), n.coord.HighestSlot()
	if beat.Restored {
		n.log.Warn("restored the record that ZooKeeper lost", "worker", claim.Worker, "term", claim.Term)
	}
	n.mu.Lock()
	defer n.unlock()
	if n.view.Load().Stage == coordinator.Alone {
		n.say(n.log.Info, "reported the restart to ZooKeeper", "worker", claim.Worker, "term", claim.Term)
	}
	if beat.FrozenUntil != 0 && n.store.frozen == 0 {
		reason := "ZooKeeper lost data"
		if beat.FrozenBy != "" {
			reason = "operator " + beat.FrozenBy + " froze it"
		}
		n.say(n.log.Warn, "registration is frozen", "cause", TroubleFrozen, "reason", reason,
			"until", time.UnixMilli(beat.FrozenUntil).UTC())
	}
	if beat.FrozenUntil == 0 && n.store.frozen != 0 {
		n.say(n.log.Info, "registration is not frozen any more")
	}
	n.store.frozen, n.store.beatAt = beat.FrozenUntil, n.now()
	n.cluster.HighestSlot = used
}

// noteStore records the result of a round. It logs when rounds begin to fail, when the lease
// expires meanwhile, and when rounds succeed again.
func (n *Node) noteStore(err error) {
	n.mu.Lock()
	defer n.unlock()
	claim := n.view.Load().Claim
	expired := n.now() >= claim.LeaseUntil
	switch {
	case errors.Is(err, store.ErrLocalSession): // the heartbeat itself was acknowledged
		if n.store.err == nil {
			n.say(n.log.Error, "could not show that this node is connected, so other nodes and operators see it as "+
				"disconnected",
				"cause", TroubleLocalSession, "error", err)
		}
	case err != nil && n.store.err == nil && expired:
		n.say(n.log.Warn, "heartbeat failed, and no lease runs", "error", err)
	case err != nil && n.store.err == nil:
		n.say(n.log.Warn, "heartbeat failed, serving until the lease expires", "cause", troubleOf(err),
			"error", err, "lease_left_s", n.leaseLeftS(claim))
	case err != nil && expired && !n.store.expired:
		n.say(n.log.Error, "the lease has expired: refusing until ZooKeeper answers", "cause", CauseLeaseExpired,
			"worker", claim.Worker, "error", err)
	case err == nil && n.store.err != nil:
		n.say(n.log.Info, "heartbeats succeed again")
	}
	n.store.err, n.store.expired = err, err != nil && expired
}

// sleep waits for d, until ZooKeeper is reached again, or for a value of woken, which may be nil. If the context ends
// first, sleep returns its error.
func (n *Node) sleep(ctx context.Context, d time.Duration, woken <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-woken:
	case <-n.cfg.Reconnected:
	case <-timer.C:
	}
	return nil
}

// untilNext returns the time to the next heartbeat or to the end of confirming, whichever comes
// first, but 1 ms or more. Heartbeats come sooner while the node confirms, and after one that failed.
func (n *Node) untilNext() time.Duration {
	next := n.cfg.Pulse.Until(n.cfg.Heartbeat)
	s := n.peek()
	if left := time.Duration(n.coord.ConfirmAt() - n.elapsed.AtLeast()); s.Stage != coordinator.Confirmed && left > 0 {
		next = min(next, left)
	}
	if wait := n.coord.Waits(); wait > 0 {
		next = min(next, wait)
	}
	if s.store.err != nil {
		next = min(next, n.cfg.Heartbeat/2) // else one heartbeat that fails would be a gap
	}
	return max(next, time.Millisecond)
}
