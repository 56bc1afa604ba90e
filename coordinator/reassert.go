package coordinator

import "context"

// reassert puts our record back after ZooKeeper lost it, above whatever term
// is there, and keeps newcomers off.
func (c *Coordinator) reassert(ctx context.Context, claim Claim, found *Slot, stat Stat, r Report, why string) (Beat, error) {
	// By the leader's clock, too: our own may have gone back.
	before := c.reading
	clock, err := c.readClock(ctx, &claim)
	if err != nil {
		return Beat{Claim: claim}, err
	}
	c.reading = before
	if c.doubted(claim) || c.hadRunOut(claim.H, clock.Stamp, r) {
		c.dropTicket(ctx, claim.Ticket, claim.Node)
		if _, err := c.freeze(ctx, claim); err != nil { // for the others
			return Beat{Claim: claim}, err
		}
		return Beat{}, &FencedError{claim.Worker, why + ", and by ZooKeeper's clock the lease has run out"}
	}
	c.Logger.Error("ZooKeeper has lost data; putting this node's record back and freezing registration", "worker", claim.Worker, "found", why)
	cl, err := c.freeze(ctx, claim)
	if err != nil {
		return Beat{Claim: claim}, err
	}
	var old Slot
	if found != nil {
		old = *found
	}
	claim, err = c.grant(claim, max(claim.Term, old.Term)+1)
	if err != nil {
		return Beat{Claim: claim}, err
	}
	now := c.Now()
	slot := c.record(claim.in(cl), claim.PendingTerm, claim.PendingNonce, old, now, r.Lease)
	slot.State, slot.Settled = r.State, claim.Settled
	version := int32(0)
	if found == nil {
		_, err = c.Store.Create(ctx, slotPath(claim.Worker), slot.marshal(), Persistent)
	} else {
		version = stat.Version + 1
		_, err = c.Store.Set(ctx, slotPath(claim.Worker), slot.marshal(), stat.Version)
	}
	if err != nil {
		return Beat{Claim: claim}, err
	}
	claim = claim.in(cl)
	c.acknowledged(slot.Nonce, version)
	written, err := c.readBack(ctx, claim.Worker)
	if err != nil {
		return Beat{Claim: claim}, err
	}
	clock = Reading{Sent: now, Acked: c.Now(), Stamp: written.Mtime}
	c.latest, c.reading = written, clock
	c.lookedAt(slot, written.epoch())
	return Beat{Claim: claim.confirmed(), H: slot.H, Settled: slot.Settled, Lost: true, Clock: clock}, nil
}
