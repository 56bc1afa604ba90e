package coordinator

import (
	"context"
	"errors"
)

// Stop marks a slot as cleanly stopped: nothing was or will be issued at or
// after m by this tenure. The slot stays its holder's until its bound, and a
// restart takes it up without waiting. The local record must say the same
// already, durably.
func (c *Coordinator) Stop(ctx context.Context, claim Claim, m int64) error {
	err := c.finish(ctx, claim, func(s *Slot) {
		s.Stopped, s.StoppedM, s.State = true, m, "stopped"
		s.Generation = claim.Generation
	})
	return errors.Join(err, c.GoDark(ctx, claim.Worker))
}

// Release gives a slot back: anybody may take it, from end on, at once. The
// local record must have been invalidated durably before. end is the first
// timestamp that this tenure has not reached, and not below its floor: the
// only place where a slot's bound goes down.
func (c *Coordinator) Release(ctx context.Context, claim Claim, end int64) error {
	err := c.finish(ctx, claim, func(s *Slot) {
		s.Released, s.H, s.State, s.Ticket = true, end, "released", ""
	})
	if err := errors.Join(err, c.GoDark(ctx, claim.Worker)); err != nil {
		return err
	}
	c.dropTicket(ctx, claim.Ticket)
	return nil
}

// finish changes our slot's record by versioned write for as long as it is
// ours. A write that was not acknowledged is looked at again, until the
// context ends.
func (c *Coordinator) finish(ctx context.Context, claim Claim, change func(*Slot)) error {
	for {
		slot, stat, err := c.slot(ctx, claim.Worker)
		if err == nil && (slot == nil || !claim.carriedBy(*slot) || slot.Released) {
			return nil // another's by now, or done: nothing of ours to finish
		}
		if err == nil {
			change(slot)
			_, err = c.Store.Set(ctx, slotPath(claim.Worker), slot.marshal(), stat.Version)
		}
		if ctx.Err() != nil || err == nil || !errors.Is(err, ErrBadVersion) && !errors.Is(err, ErrUnreachable) {
			return err
		}
	}
}
