package node

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/lineproto"
)

// keep gets a slot and keeps it: it reports to ZooKeeper every heartbeat, when
// ZooKeeper has come back, and when the settling time is over. A node that is
// fenced registers as a new one.
func (n *Node) keep(ctx context.Context) error {
	a, err := n.begin()
	if err != nil {
		return err
	}
	if err := n.acquire(ctx, a, n.cfg.StartTimeout); err != nil {
		return err
	}
	for {
		err := n.step(ctx)
		var fenced *coordinator.FencedError
		if errors.As(err, &fenced) {
			n.fenced(fenced)
			if err := n.acquire(ctx, n.newcomer(), 0); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := n.idle(ctx); err != nil {
			return err
		}
	}
}

// step is one round: publish what may issue, report, look at the clock.
func (n *Node) step(ctx context.Context) error {
	n.publish()
	if err := n.beat(ctx); err != nil {
		return err
	}
	n.publish()
	return n.rotateIfBehind(ctx)
}

// idle waits until there is something to do.
func (n *Node) idle(ctx context.Context) error {
	timer := time.NewTimer(n.untilNext())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-n.kick:
	case <-n.cfg.Reconnected:
	case <-timer.C:
	}
	return nil
}

// untilNext is the time to the next heartbeat or to the end of settling,
// whichever comes first.
func (n *Node) untilNext() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := n.cfg.Heartbeat
	if left := time.Duration(n.settleAt - n.mono()); !n.settled && left > 0 {
		next = min(next, left)
	}
	return max(next, time.Millisecond)
}

// publish lets the held tenure issue if it may: it has a settled lease, the
// clock has reached its floor and is not wrong, and a bound is durable. A lease
// that ran out while the node was away counts again once it is settled anew.
func (n *Node) publish() {
	n.mu.Lock()
	t := n.held
	switch {
	case t == nil || n.serving.Load() == t || n.phase == Stopping:
		n.mu.Unlock()
		return
	case !n.claim.Settled || n.now() >= n.claim.H:
		if n.phase != Settling {
			n.refuseLocked(Settling, lineproto.NOTREADY, "settling reason=waiting-for-a-forgotten-owner")
		}
		n.mu.Unlock()
		return
	case n.clockWrong:
		n.mu.Unlock()
		return
	case n.now() < t.lo:
		if n.phase != Waiting {
			n.refuseLocked(Waiting, lineproto.NOTREADY, "waiting reason=clock-has-to-reach-what-the-predecessor-reserved")
			n.log.Info("waiting for the clock to reach what the predecessor may have used", "for", ms(t.lo-n.now()).String())
			wake(n.poke)
		}
		n.mu.Unlock()
		return
	}
	n.mu.Unlock()
	n.extend(0)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.held != t || n.phase == Stopping || n.serving.Load() == t:
		// Dropped meanwhile, or the other loop was faster.
	case n.diskErr != nil && t.gen.Limit() <= n.layout.CeilTick(t.lo):
		n.refuseLocked(Refusing, lineproto.NOTREADY, "refusing reason=no-durable-bound")
	default:
		n.phase = Serving
		n.serving.Store(t)
		n.log.Info("serving", "worker", t.worker, "term", n.claim.Term, "lease_left", ms(n.claim.H-n.now()).Round(time.Second).String())
	}
}

// beat reports once. Its error is *FencedError or the context's: a ZooKeeper
// that does not answer is no error for a node that has a lease.
func (n *Node) beat(ctx context.Context) error {
	n.mu.Lock()
	claim := n.claim
	report := coordinator.Report{
		Generation: n.generation, State: string(n.phase), RestartedFrom: n.restartedFrom,
		Settle: !n.settled && n.restartedFrom == 0 && n.mono() >= n.settleAt,
	}
	n.mu.Unlock()
	report.Lease = n.lease()

	callCtx, cancel := context.WithTimeout(ctx, n.cfg.CallTimeout)
	defer cancel()
	beat, err := n.coord.Heartbeat(callCtx, claim, report)
	var fenced *coordinator.FencedError
	switch {
	case errors.As(err, &fenced):
		return err
	case ctx.Err() != nil:
		n.setClaim(beat.Claim)
		return ctx.Err()
	case err != nil:
		n.setClaim(beat.Claim)
		n.noteStore(err)
		return nil
	}
	if err = n.acknowledged(beat, report); err == nil {
		err = n.showLive(callCtx)
	}
	if err == nil {
		err = n.judgeClock(callCtx, beat.Clock)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	n.noteStore(err)
	return nil
}

// acknowledged takes over what a heartbeat came to. The first that settled the
// slot is stored before it counts.
func (n *Node) acknowledged(beat coordinator.Beat, r coordinator.Report) error {
	if beat.Lost {
		n.log.Warn("put back what ZooKeeper had lost", "worker", beat.Claim.Worker, "term", beat.Claim.Term)
	}
	used := n.coord.Used()
	n.mu.Lock()
	if beat.FrozenUntil != 0 && n.frozen == 0 {
		n.log.Warn("registration is frozen: ZooKeeper has lost data", "until", time.UnixMilli(beat.FrozenUntil).UTC())
	}
	n.frozen, n.beatAt, n.beatH = beat.FrozenUntil, n.now(), beat.H
	if r.RestartedFrom != 0 {
		n.restartedFrom = 0
		n.log.Info("ZooKeeper knows of the restart", "worker", beat.Claim.Worker, "term", beat.Claim.Term)
	}
	if beat.Wait > 0 || r.RestartedFrom != 0 {
		n.settleAt = n.mono() + int64(beat.Wait)
	}
	first := beat.Settled && !n.settled
	n.settled = beat.Settled
	n.cluster.Used = max(n.cluster.Used, used)
	n.mu.Unlock()
	if beat.Settled {
		beat.Claim.Settled, beat.Claim.H = true, max(beat.Claim.H, beat.H)
	}
	if first {
		if _, err := (ledger{n}).Save(beat.Claim); err != nil {
			n.mu.Lock()
			n.settled = false // again at the next heartbeat
			n.mu.Unlock()
			return err
		}
	}
	n.setClaim(beat.Claim)
	if held := n.held; held != nil && beat.Claim.Lo > held.lo {
		// The lease had run out, and others may have had the slot since: a new
		// tenure, from the new floor on.
		n.refuse(Settling, lineproto.NOTREADY, "settling reason=the-lease-had-run-out")
		held.gen.Close()
		beat.Claim.Lo = max(beat.Claim.Lo, n.layout.Start(held.gen.End()))
		return n.hold(beat.Claim)
	}
	return nil
}

// setClaim takes over a claim in memory; the next extension stores it.
func (n *Node) setClaim(claim coordinator.Claim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claim = claim
	n.applyBounds()
}

// showLive keeps the live lock while there is a lease to show.
func (n *Node) showLive(ctx context.Context) error {
	n.mu.Lock()
	claim := n.claim
	over := claim.Settled && n.now() >= claim.H
	n.mu.Unlock()
	if over {
		return n.coord.GoDark(ctx, claim.Worker)
	}
	return n.coord.GoLive(ctx, claim)
}

// noteStore logs changes between reaching ZooKeeper and not.
func (n *Node) noteStore(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil && n.storeErr == nil:
		n.log.Warn("a heartbeat failed: serving on within the lease", "error", err, "lease_left", ms(n.claim.H-n.now()).Round(time.Second).String())
	case err == nil && n.storeErr != nil:
		n.log.Info("heartbeats reach ZooKeeper again")
	}
	n.storeErr = err
}

// fenced drops the tenure: somebody else has the slot.
func (n *Node) fenced(err *coordinator.FencedError) {
	n.log.Error("fenced: issuing nothing more for this worker, registering as a new node", "worker", err.Worker, "reason", err.Reason)
	n.refuse(Starting, lineproto.FENCED, "this node lost its worker and is registering as a new one")
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held != nil {
		n.held.gen.Close()
		n.held = nil
	}
	n.served, n.rotations = 0, nil
}
