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
	if err := c.Settle(ctx); err != nil {
		return Grant{}, err
	}
	if _, err := c.resumable(ctx, claim); err != nil {
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

// resumable reads the cluster's record and the slot of the claim. It returns an error if the claim does not hold
// the slot.
func (c *Coordinator) resumable(ctx context.Context, claim Claim) (view, error) {
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return view{}, err
	}
	v, err := c.readView(ctx, claim.Worker)
	switch {
	case err != nil:
		return view{}, err
	case v.cl == nil:
		return view{}, ErrNoCluster
	case v.cl.UUID != c.mine.UUID:
		return view{}, &OtherClusterError{Found: v.cl.UUID, Ours: c.mine.UUID}
	}
	err = JudgeResume(v.slot, claim)
	var no *NotOursError
	if errors.As(err, &no) && claim.Nonce != "" && (no.Lost || c.holdingOf(claim).showsLoss(v, c.mine.UUID)) {
		c.Note(c.lossOf(claim, v.cl, no.Reason)) // Register settles it
	}
	return v, err
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
		v, err := c.resumable(ctx, claim)
		if err != nil {
			return Grant{}, err
		}
		grant, err := c.writeResumed(ctx, claim, v, lease)
		if !errors.Is(err, zkstore.ErrBadVersion) && !errors.Is(err, zkstore.ErrNoNode) {
			grant.Clock = clock
			return grant, err
		}
	}
}

// writeResumed writes a slot that resumable returned. If ZooKeeper has older data than the
// claim, it raises the incarnation first.
func (c *Coordinator) writeResumed(ctx context.Context, claim Claim, v view, lease time.Duration) (Grant, error) {
	finding, why := c.holdingOf(claim).judge(v, c.mine.UUID, c.seen)
	c.saw(*v.cl)
	if finding == FoundLost {
		cl, err := c.raise(ctx, c.lossOf(claim, v.cl, why))
		if err != nil {
			return Grant{}, err
		}
		v.cl = &cl
	}
	claim = claim.adopt(*v.slot)
	claim.Floor = max(claim.Floor, claim.ReservedUntil)
	return c.writeNextTerm(ctx, claim, v, lease)
}

// writeNextTerm writes our slot with the next term. The record is confirmed only if the write goes on where the
// process before has stopped. Otherwise a holder that ZooKeeper has lost has time to come back. With
// an error the grant has the claim as it was saved.
func (c *Coordinator) writeNextTerm(ctx context.Context, claim Claim, v view, lease time.Duration) (Grant, error) {
	hold := c.holdingOf(claim)
	goesOn := hold.goesOn(v, c.gather(Report{}))
	cl := v.cl.withHorizon(c.gather(Report{}).agreedNow(), lease)
	claim, slot, err := c.nextGrant(claim, cl, *v.slot, lease, goesOn)
	if err != nil {
		return Grant{Claim: claim}, err
	}
	e := c.gather(Report{}) // once more after the disk, which may take long
	if goesOn = goesOn && hold.goesOn(v, e); !goesOn {
		claim.Heard = Chain{}
	}
	slot.Confirmed, slot.UnbrokenMs = goesOn, claim.Heard.Unbroken(e.boot, e.beat).Milliseconds()
	d := decision{slot: slot, confirms: goesOn}
	if cl != *v.cl {
		d.cluster = &cl
	}
	written, _, err := c.write(ctx, d, v, claim.Worker)
	if err != nil {
		return Grant{Claim: claim}, err
	}
	ranUntil := claim.runsUntil(*v.slot)
	clock := c.setReading(slot.ReportedClock, written)
	claim = c.setHolding(claim, *v.cl, e.boot, v.stat.Version+1, slot.LeaseUntil)
	grant := Grant{Claim: claim, LeaseUntil: slot.LeaseUntil, Clock: clock}
	e = c.gather(Report{})
	// This process does not know what the earlier process saw of ZooKeeper.
	if e.hasPassed(ranUntil, clock.Stamp) {
		c.holding.doubt = doubt{raised: true, now: clock.Sent, stamp: clock.Stamp}
		goesOn = false
	}
	if !goesOn || !hold.goesOn(v, e) { // the write may have been late
		grant.Wait = confirmTime(*v.cl)
		if slot.Confirmed {
			c.holding.notBefore = e.now + grant.Wait.Milliseconds() // the next heartbeat writes it again, unconfirmed
		}
	}
	return grant, nil
}
