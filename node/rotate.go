package node

import (
	"context"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/timeguard"
)

// maxRotations is how many fresh slots a node takes within a lease (W).
const maxRotations = 4

// rotateIfBehind takes a fresh slot when the clock went back so far that
// waiting for it would cost more (the settling time of a slot, if there was one
// last time), and ZooKeeper and the peers agree with the
// new time. The old slot is given back where its IDs ended.
func (n *Node) rotateIfBehind(ctx context.Context) error {
	n.mu.Lock()
	old, claim, layout := n.held, n.claim, n.layout
	// One that has not been published has issued nothing: it waits for a floor.
	due := old != nil && n.serving.Load() == old && n.storeErr == nil && !n.clockWrong &&
		n.verdict.Verified() && !n.verdict.Wrong() && n.behind(old) > max(timeguard.RotateBehind, n.lastSettle)
	behind := time.Duration(0)
	if due {
		behind = n.behind(old)
		since := n.now() - n.cluster.LeaseMs
		n.rotations = slices.DeleteFunc(n.rotations, func(at int64) bool { return at < since })
		if due = len(n.rotations) < maxRotations; due {
			n.rotations = append(n.rotations, n.now())
		}
	}
	n.mu.Unlock()
	if !due {
		return nil
	}
	n.log.Warn("the clock went back and ZooKeeper and peers agree with it: taking a fresh worker", "behind", behind.String(), "worker", claim.Worker)
	callCtx, cancel := context.WithTimeout(ctx, n.cfg.CallTimeout)
	defer cancel()
	// The same identity and ticket: only the slot is another.
	grant, err := n.coord.Register(callCtx, coordinator.Claim{Node: claim.Node, Ticket: claim.Ticket}, n.lease(), n.checkClock)
	if err != nil {
		n.log.Warn("no fresh worker could be had: waiting for the clock to catch up", "error", err)
		// The local record may name the other slot by now: it is to be ours again.
		return n.keepOld(claim)
	}
	n.refuse(Settling, lineproto.NOTREADY, "settling reason=took-a-fresh-worker-after-the-clock-went-back")
	old.gen.Close()
	end := layout.Start(old.gen.End())
	if err := n.granted(grant, "took a fresh worker"); err != nil {
		return err
	}
	claim.Ticket = "" // the new slot's as well
	if err := n.coord.Release(callCtx, claim, max(old.lo, end)); err != nil {
		n.log.Warn("the old worker could not be given back: it frees when its lease ends", "worker", claim.Worker, "error", err)
	}
	wake(n.kick)
	return ctx.Err()
}

// keepOld makes the local record say again what it said before an attempt at
// another slot, with the bound that our generator has.
func (n *Node) keepOld(claim coordinator.Claim) error {
	n.mu.Lock()
	if n.claim.Worker == claim.Worker && n.claim.Node == claim.Node {
		n.mu.Unlock()
		return nil
	}
	claim.M = max(claim.M, n.layout.Start(n.held.gen.Limit()))
	n.mu.Unlock()
	_, err := ledger{n}.Save(claim)
	return err
}
