package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
)

// Resume renews the slot of the local record. It calls check with the clocks of the leader
// and of the peers, then writes the slot with the next term and a new nonce.
//
// The returned claim's floor is at least the reserved bound, which the earlier process may
// have reached. Its lease bound is that of the local record: below it the node may issue at
// once. The grant's LeaseUntil counts once the slot is confirmed.
//
// Errors are *NotOursError (register as a new node), *OtherClusterError, ErrNoCluster,
// those of check and those of the store. The node may start from the local record alone
// only after zkstore.ErrUnreachable or a *NotOursError with Lost.
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

// resumable reads the slot of the claim. It returns an error if the claim does not hold it.
func (c *Coordinator) resumable(ctx context.Context, claim Claim) (Cluster, Slot, zkstore.Stat, error) {
	cl, err := c.joined(ctx)
	if err != nil {
		return Cluster{}, Slot{}, zkstore.Stat{}, err
	}
	found, stat, err := c.slot(ctx, claim.Worker)
	if err == nil {
		err = JudgeResume(found, claim)
	}
	var no *NotOursError
	if errors.As(err, &no) && !no.Lost && found != nil && claim.wasLost(*found) {
		c.owed = &owedFreeze{claim, no.Reason} // Register pays it
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

// writeResumed writes a slot that resumable returned. If ZooKeeper has older data than the
// claim, it freezes registration first.
func (c *Coordinator) writeResumed(ctx context.Context, claim Claim, cl Cluster, found Slot, stat zkstore.Stat, lease time.Duration) (Grant, error) {
	older := found.LeaseUntil < claim.LeaseUntil || cl.Incarnation < claim.Incarnation
	if older && c.mustFreeze(&cl, claim) {
		frozen, err := c.freeze(ctx, claim, "ZooKeeper has older data than this node")
		if err != nil {
			return Grant{}, err
		}
		cl = frozen
	}
	claim = claim.adopt(found)
	claim.Floor = max(claim.Floor, claim.ReservedUntil)
	return c.writeNextTerm(ctx, claim, cl, found, stat, lease)
}

// writeNextTerm writes our slot with the next term. The record is not confirmed, so that a
// holder that ZooKeeper has lost has time to come back. With an error the grant has the
// claim as it was saved.
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
	clock := c.setReading(slot.ReportedClock, written)
	claim = c.setHolding(claim, cl, written.Version)
	c.setCompared(slot.LeaseUntil, written.Epoch())
	// This process does not know what the earlier process saw of ZooKeeper.
	if c.gather(Report{}).hasPassed(ranUntil, clock.Stamp) {
		c.holding.doubt = doubt{raised: true, now: clock.Sent, stamp: clock.Stamp}
	}
	return Grant{Claim: claim, LeaseUntil: slot.LeaseUntil, Wait: c.confirmWait(ctx, cl, claim.Worker), Clock: clock}, nil
}
