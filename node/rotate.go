package node

import (
	"context"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
)

// maxRotations is how many fresh slots a node takes within a lease (W).
const maxRotations = 4

// rotateIfBehind takes a fresh slot when the clock went back so far that
// waiting for it would cost more (the settling time of a slot, if there was one
// last time), and ZooKeeper and the peers agree with the new time. The old slot
// is given back where its IDs ended.
func (n *Node) rotateIfBehind(ctx context.Context) error {
	n.mu.Lock()
	old, claim, layout := n.held, n.claim, n.layout
	// One that has not been published has issued nothing: it waits for a floor.
	due := old != nil && n.serving.Load() == old && n.store.err == nil && !n.skew.wrong &&
		n.skew.verdict.Verified() && !n.skew.verdict.Wrong() && n.costs(old) > max(limits.RotateBehind, n.keeper.lastSettle)
	behind := time.Duration(0)
	if due {
		behind = n.costs(old)
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
	callCtx, cancel := context.WithTimeout(ctx, 6*n.cfg.CallTimeout)
	defer cancel()
	var grant coordinator.Grant
	cl, err := coordinator.ReadCluster(callCtx, n.cfg.Store)
	if err == nil {
		// The same identity and ticket: only the slot is another.
		grant, err = n.coord.Register(callCtx, cl, coordinator.Claim{Node: claim.Node, Ticket: claim.Ticket}, n.lease(), n.checkClock)
	}
	if err != nil {
		n.log.Warn("no fresh worker could be had: waiting for the clock to catch up", "error", err)
		n.keepOld(claim)
		return nil
	}
	n.refuse(Settling, CauseFreshWorker)
	old.gen.Close()
	end := layout.Start(old.gen.End())
	claim.Ticket = "" // the new slot's as well
	n.keeper.owed = append(n.keeper.owed, debt{claim, end})
	if err := n.granted(grant, "took a fresh worker"); err != nil {
		return err
	}
	n.releaseOwed(ctx)
	wake(n.kick)
	return ctx.Err()
}

// costs is for how long a tenure refuses for a clock that went back. Where it goes
// on by counting that, a restart would refuse. mu is held.
func (n *Node) costs(t *tenure) time.Duration {
	if restart := timeguard.StartWait(n.now(), n.m); n.onRollback.Counts() && restart > limits.MaxStartWait {
		return restart
	}
	return t.gen.Behind()
}

// keepOld makes the local record say again what it said before an attempt at
// another slot, with the bound that our generator has. Where it cannot be
// written, the next extension puts it right.
func (n *Node) keepOld(claim coordinator.Claim) {
	n.mu.Lock()
	n.rotations = n.rotations[:max(0, len(n.rotations)-1)] // no slot was had
	changed := n.claim.Worker != claim.Worker || n.claim.Node != claim.Node
	if changed {
		claim.M = n.layout.Start(n.held.gen.Limit())
		n.claim, n.m = claim, claim.M
	}
	n.mu.Unlock()
	if !changed {
		return
	}
	if _, err := (ledger{n}).Save(claim); err != nil {
		n.log.Warn("the local record names a worker that was not had, until it can be written", "error", err)
	}
}

// debt is a slot that is to be given back, at the end of what was issued for it.
type debt struct {
	claim coordinator.Claim
	end   int64
}

// releaseOwed gives back slots that were left after a rollback. One that cannot
// be is tried again at the next heartbeat.
func (n *Node) releaseOwed(ctx context.Context) {
	owed := n.keeper.owed
	n.keeper.owed = nil
	for _, d := range owed {
		callCtx, cancel := context.WithTimeout(ctx, n.cfg.CallTimeout)
		err := n.coord.Release(callCtx, d.claim, d.end)
		cancel()
		if err == nil {
			n.log.Info("gave the old worker back", "worker", d.claim.Worker)
			continue
		}
		n.keeper.owed = append(n.keeper.owed, d)
	}
}
