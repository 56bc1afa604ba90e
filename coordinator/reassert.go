package coordinator

import (
	"context"
	"errors"

	"github.com/flaked/flaked/zkstore"
)

// reassert puts our record back after ZooKeeper has lost it. why says what was found.
// First it freezes registration, as newcomers may be about to settle. The record gets a
// higher term than the one that is there.
func (c *Coordinator) reassert(ctx context.Context, hold holding, v view, r Report, why string) (Beat, error) {
	claim := hold.Claim
	cl, err := c.freeze(ctx, claim, why)
	if err != nil {
		return Beat{Claim: claim}, err
	}
	// Another owner may have frozen long ago. Whether that freeze is long enough is judged
	// by the leader's clock now. hasPassed must use the reading from before the loss, so
	// c.reading stays what it was.
	before := c.reading
	clock, err := c.touchTicket(ctx, &claim)
	c.reading = before
	if err == nil && cl.FrozenUntil < clock.Stamp+cl.LeaseMs {
		cl, err = c.freezeFromNow(ctx, claim)
	}
	if err != nil {
		return Beat{Claim: claim}, err
	}
	// Our own clock may have gone back.
	if hold.doubted() || c.gather(r).hasPassed(claim.H, clock.Stamp) {
		c.dropTicket(ctx, claim.Ticket, claim.Node)
		return Beat{}, &FencedError{claim.Worker, why + ", and by ZooKeeper's clock the lease has run out"}
	}
	beat, err := c.putBack(ctx, claim, cl, v, r)
	if err == nil {
		c.replaceAllLost(ctx, cl)
	}
	return beat, err
}

// putBack writes our record over what is there, or where nothing is.
func (c *Coordinator) putBack(ctx context.Context, claim Claim, cl Cluster, v view, r Report) (Beat, error) {
	var old Slot
	if v.slot != nil && !v.slot.Lost { // one that keeps our place says nothing of our lease
		old = *v.slot
	}
	claim, slot, err := c.nextGrant(claim, cl, old, r.Lease)
	if err != nil {
		return Beat{Claim: claim}, err
	}
	slot.State, slot.Settled = r.State, claim.Settled
	version := int32(0)
	if v.slot == nil {
		_, err = c.Store.Create(ctx, slotPath(claim.Worker), slot.marshal(), zkstore.Persistent)
		if errors.Is(err, zkstore.ErrNoNode) { // the parent is gone as well
			if err := ensureRoot(ctx, c.Store); err != nil {
				return Beat{Claim: claim}, err
			}
			_, err = c.Store.Create(ctx, slotPath(claim.Worker), slot.marshal(), zkstore.Persistent)
		}
	} else {
		version = v.stat.Version + 1
		_, err = c.Store.Set(ctx, slotPath(claim.Worker), slot.marshal(), v.stat.Version)
	}
	if err != nil {
		return Beat{Claim: claim}, err
	}
	held := c.setHolding(claim, cl, version)
	written, err := c.readBack(ctx, claim.Worker)
	if err != nil {
		return Beat{Claim: claim.in(cl)}, err
	}
	clock := c.setReading(slot.Reported, written)
	c.setCompared(slot.H, written.Epoch())
	return Beat{Claim: held, H: slot.H, Settled: slot.Settled, Lost: true, FrozenUntil: cl.FrozenUntil, Clock: clock}, nil
}
