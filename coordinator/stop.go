package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// Stop marks a slot as cleanly stopped: nothing was or will be issued at or
// after m by this tenure. The slot stays its holder's until its bound, and a
// restart takes it up without waiting. The local record must say the same
// already, durably.
func (c *Coordinator) Stop(ctx context.Context, claim Claim, m int64) error {
	err := c.finish(ctx, claim, func(s *Slot) {
		s.Stopped, s.StoppedM, s.State = true, m, "stopped"
		s.H = max(s.H, claim.H)
		s.Generation = claim.Generation
	})
	return errors.Join(err, c.goDark(ctx, claim.Worker, claim.Node))
}

// Release gives a slot back: anybody may take it, from end on, at once. The
// local record must have been invalidated durably before. end is the first
// timestamp that this tenure has not reached; the bound becomes that, or the
// tenure's floor if it is higher. But for ByHand.LowerBound it goes down nowhere else.
func (c *Coordinator) Release(ctx context.Context, claim Claim, end int64) error {
	err := c.finish(ctx, claim, func(s *Slot) {
		s.Released, s.H, s.State, s.Ticket = true, max(claim.Lo, end), "released", ""
	})
	if err == nil {
		c.dropTicket(ctx, claim.Ticket, claim.Node)
	}
	return errors.Join(err, c.goDark(ctx, claim.Worker, claim.Node))
}

// finish changes our slot's record by versioned write for as long as it is
// ours. A write that was not acknowledged is looked at again, until the
// context ends.
func (c *Coordinator) finish(ctx context.Context, claim Claim, change func(*Slot)) error {
	for {
		err := c.tryFinish(ctx, claim, change)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, zkstore.ErrBadVersion), errors.Is(err, zkstore.ErrNoNode):
		case errors.Is(err, zkstore.ErrUnreachable):
			c.pause(ctx)
		default:
			return err
		}
	}
}

func (c *Coordinator) tryFinish(ctx context.Context, claim Claim, change func(*Slot)) error {
	// What a lagging server says is neither the loss of data nor somebody else.
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return err
	}
	v, err := c.readView(ctx, claim.Worker)
	if err != nil {
		return err
	}
	slot := v.slot
	if slot != nil && claim.carriedBy(*slot) && slot.Released {
		return nil // by a write of ours that was not acknowledged
	}
	if finding, why := c.holdingOf(claim).judge(v, c.mine.UUID); finding == FoundLost && c.mustFreeze(v.cl, claim) {
		// As a heartbeat would: nobody else may have noticed, and after our write
		// it would not be seen any more.
		if _, err := c.freeze(ctx, claim, why); err != nil {
			return err
		}
	}
	if slot == nil || !claim.carriedBy(*slot) {
		return nil // another's by now: nothing of ours to finish
	}
	change(slot)
	_, err = c.Store.Set(ctx, slotPath(claim.Worker), slot.marshal(), v.stat.Version)
	return err
}

// pause keeps those who try again from doing nothing else where a store fails
// at once.
func (c *Coordinator) pause(ctx context.Context) {
	timer := time.NewTimer(c.RetryAfter)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
