package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
)

// Stop marks a slot as cleanly stopped: this holding issues no ID at or after end, Unix ms.
// The node keeps the slot until the lease bound, and a restart resumes it without waiting.
// The local record must already have the same, durably.
func (c *Coordinator) Stop(ctx context.Context, claim Claim, end int64) error {
	err := c.finish(ctx, claim, func(s *Slot) {
		s.Stopped, s.StoppedAt, s.State = true, end, "stopped"
		s.LeaseUntil = max(s.LeaseUntil, claim.LeaseUntil)
		s.Generation = claim.Generation
	})
	return errors.Join(err, c.deleteLiveLock(ctx, claim.Worker, claim.Node))
}

// Release gives a slot back: any node may take it at once, and issue from end on. The local
// record must have been made invalid before, durably. end is the first timestamp that this
// holding has not reached, Unix ms. The lease bound becomes end, or the floor if that is
// higher. Only Release lowers a lease bound.
func (c *Coordinator) Release(ctx context.Context, claim Claim, end int64) error {
	err := c.finish(ctx, claim, func(s *Slot) {
		s.Released, s.LeaseUntil, s.State, s.Ticket = true, max(claim.Floor, end), "released", ""
	})
	if err == nil {
		c.dropTicket(ctx, claim.Ticket, claim.Node)
	}
	return errors.Join(err, c.deleteLiveLock(ctx, claim.Worker, claim.Node))
}

// finish changes our slot's record by a versioned write, if it is still ours. If a write is
// not acknowledged, finish reads the record and tries again until ctx ends or the store is closed.
func (c *Coordinator) finish(ctx context.Context, claim Claim, change func(*Slot)) error {
	for {
		err := c.tryFinish(ctx, claim, change)
		switch {
		case err == nil || ctx.Err() != nil || errors.Is(err, zkstore.ErrClosed):
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
	// The server may lag behind: an old record must not look like a loss of data.
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return err
	}
	v, err := c.readView(ctx, claim.Worker)
	if err != nil {
		return err
	}
	slot := v.slot
	if slot != nil && claim.carriedBy(*slot) && slot.Released {
		return nil // our earlier write arrived without an acknowledgement
	}
	// As a heartbeat does. Nobody else may have noticed the loss, and our write hides it.
	hold := c.holdingOf(claim)
	finding, why := hold.judge(v, c.mine.UUID, c.seen)
	if finding == FoundLost || finding == FoundFenced && hold.showsLoss(v, c.mine.UUID) {
		c.Note(c.lossOf(claim, v.cl, why))
	}
	if err := c.Settle(ctx); err != nil {
		return err
	}
	if slot == nil || !claim.carriedBy(*slot) {
		return nil // another node has the slot
	}
	change(slot)
	_, err = c.Store.Set(ctx, slotPath(claim.Worker), slot.marshal(), v.stat.Version)
	return err
}

// pause waits for RetryAfter, or until ctx ends.
func (c *Coordinator) pause(ctx context.Context) {
	timer := time.NewTimer(c.RetryAfter)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
