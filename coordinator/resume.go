package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// Resume takes up the slot of the local record again: it is written with the
// next term and a new nonce, after the clock has been checked.
//
// The claim's floor becomes what the predecessor may have reached. Its bound
// stays that of the local record, below which the node may issue at once; the
// grant's counts once it is settled.
//
// Errors are *NotOursError (register as a new node), *OtherClusterError,
// ErrNoCluster, those of check and of the store. Only zkstore.ErrUnreachable, and a
// *NotOursError that says Lost, may be answered by starting from the local record alone.
func (c *Coordinator) Resume(ctx context.Context, claim Claim, lease time.Duration, check ClockCheck) (Grant, error) {
	if _, _, _, err := c.resumable(ctx, claim); err != nil {
		return Grant{}, err
	}
	ticket := claim.Ticket
	clock, err := c.touchTicket(ctx, &claim)
	if err != nil {
		return Grant{}, err
	}
	grant, err := c.resumeWith(ctx, claim, clock, lease, check)
	if err != nil && claim.Ticket != ticket {
		c.giveBackTicket(ctx, claim, err)
	}
	return grant, err
}

// resumable reads the slot of a claim that may be resumed.
func (c *Coordinator) resumable(ctx context.Context, claim Claim) (Cluster, Slot, zkstore.Stat, error) {
	cl, err := c.joined(ctx)
	if err != nil {
		return Cluster{}, Slot{}, zkstore.Stat{}, err
	}
	found, stat, err := c.slot(ctx, claim.Worker)
	if err == nil {
		err = JudgeResume(found, claim)
	}
	if err != nil {
		return Cluster{}, Slot{}, zkstore.Stat{}, err
	}
	return cl, *found, stat, nil
}

func (c *Coordinator) resumeWith(ctx context.Context, claim Claim, clock Reading, lease time.Duration, check ClockCheck) (Grant, error) {
	peers, err := c.Peers(ctx, claim.Worker)
	if err != nil {
		return Grant{}, err
	}
	if err := check(clock, peers); err != nil {
		return Grant{}, err
	}
	for {
		cl, found, stat, err := c.resumable(ctx, claim)
		if err != nil {
			return Grant{}, err
		}
		grant, err := c.writeResumed(ctx, claim, cl, found, stat, lease)
		if !errors.Is(err, zkstore.ErrBadVersion) && !errors.Is(err, zkstore.ErrNoNode) {
			grant.Clock = clock
			return grant, err
		}
	}
}

// writeResumed writes a slot that may be resumed.
func (c *Coordinator) writeResumed(ctx context.Context, claim Claim, cl Cluster, found Slot, stat zkstore.Stat, lease time.Duration) (Grant, error) {
	older := found.H < claim.H || cl.Incarnation < claim.Incarnation
	if older && c.mustFreeze(&cl, claim) {
		frozen, err := c.freeze(ctx, claim, "ZooKeeper has older data than this node")
		if err != nil {
			return Grant{}, err
		}
		cl = frozen
	}
	claim = claim.adopt(found)
	claim.Lo = max(claim.Lo, claim.M)
	return c.writeNextTerm(ctx, claim, cl, found, stat, lease)
}

// writeNextTerm writes a slot that is ours with the next term. The record is not settled:
// an owner that this record has been hiding still gets the time to come back. With an
// error it returns the claim as it was saved.
func (c *Coordinator) writeNextTerm(ctx context.Context, claim Claim, cl Cluster, found Slot, stat zkstore.Stat, lease time.Duration) (Grant, error) {
	claim, slot, err := c.nextGrant(claim, cl, found, lease)
	if err != nil {
		return Grant{Claim: claim}, err
	}
	written, err := c.Store.Set(ctx, slotPath(claim.Worker), slot.marshal(), stat.Version)
	if err != nil {
		return Grant{Claim: claim}, err
	}
	ranUntil := claim.runsUntil(found)
	clock := c.setReading(slot.Reported, written)
	claim = c.setHolding(claim, cl, written.Version)
	c.setCompared(slot.H, written.Epoch())
	// This process does not know what its predecessor saw of ZooKeeper.
	if c.gather(Report{}).hasPassed(ranUntil, clock.Stamp) {
		c.holding.doubt = doubt{raised: true, now: clock.Sent, stamp: clock.Stamp}
	}
	return Grant{Claim: claim, H: slot.H, Settle: c.settling(ctx, cl, claim.Worker), Clock: clock}, nil
}
