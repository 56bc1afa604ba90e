package coordinator

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/zkstore"
)

// reassert puts our record back after ZooKeeper has lost it. First it freezes
// registration, because new nodes may be about to confirm. Our record gets a higher term than
// the one in ZooKeeper. why says how the loss was noticed, for the log.
func (c *Coordinator) reassert(ctx context.Context, hold holding, v view, r Report, why string) (HeartbeatResult, error) {
	claim := hold.Claim
	l := c.lossOf(claim, v.cl, why)
	cl, err := c.raise(ctx, l)
	if err != nil {
		return HeartbeatResult{Claim: claim}, err
	}
	// Another holder may have frozen long ago. By the leader's clock now, check whether that
	// freeze is long enough. hasPassed needs the reading from before the loss: restore it.
	before := c.reading
	clock, err := c.touchTicket(ctx, &claim)
	c.reading = before
	if err == nil && cl.FrozenUntil < cl.lastLease(clock.Stamp) {
		cl, err = c.raise(ctx, l)
	}
	if err != nil {
		return HeartbeatResult{Claim: claim}, err
	}
	// By our own clock the lease still runs, but that clock may have gone back.
	if hold.doubted() || c.gather(r).hasPassed(claim.LeaseUntil, clock.Stamp) {
		c.dropTicket(ctx, claim.Ticket, claim.Node)
		return HeartbeatResult{}, &FencedError{claim.Worker, why + ", and by ZooKeeper's clock the lease has expired", true}
	}
	beat, err := c.putBack(ctx, claim, cl, v, r)
	if err == nil {
		c.replaceAllLost(ctx, cl)
	}
	return beat, err
}

// putBack creates our record, or writes it over the record found.
func (c *Coordinator) putBack(ctx context.Context, claim Claim, cl Cluster, v view, r Report) (HeartbeatResult, error) {
	var old Slot
	if v.slot != nil && !v.slot.Lost { // a Lost record's bound is no lease of ours
		old = *v.slot
	}
	claim.Heard = Chain{} // of a record that is lost
	claim, slot, err := c.nextGrant(claim, cl, old, r.Lease, claim.Confirmed)
	if err != nil {
		return HeartbeatResult{Claim: claim}, err
	}
	slot.State, slot.Confirmed = r.State, claim.Confirmed
	version, sent := int32(0), c.Boot()
	if v.slot == nil {
		_, err = c.Store.Create(ctx, slotPath(claim.Worker), slot.marshal(), zkstore.Persistent)
		if errors.Is(err, zkstore.ErrNoNode) { // the parent is lost as well
			if err := ensureRoot(ctx, c.Store); err != nil {
				return HeartbeatResult{Claim: claim}, err
			}
			_, err = c.Store.Create(ctx, slotPath(claim.Worker), slot.marshal(), zkstore.Persistent)
		}
	} else {
		version = v.stat.Version + 1
		_, err = c.Store.Set(ctx, slotPath(claim.Worker), slot.marshal(), v.stat.Version)
	}
	if err != nil {
		return HeartbeatResult{Claim: claim}, err
	}
	if slot.LeaseUntil > old.LeaseUntil {
		claim = claim.lasting(slot.LeaseUntil, slot.ReportedClock, sent)
	}
	held := c.setHolding(claim, cl, sent, version, slot.LeaseUntil)
	written, err := c.readBack(ctx, claim.Worker)
	if err != nil {
		return HeartbeatResult{Claim: claim.in(cl)}, err
	}
	clock := c.setReading(slot.ReportedClock, written)
	return HeartbeatResult{Claim: held, LeaseUntil: slot.LeaseUntil, Confirmed: slot.Confirmed, Lost: true, FrozenUntil: cl.FrozenUntil, FrozenBy: cl.FrozenBy, Clock: clock}, nil
}
