package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Stop marks a slot as cleanly stopped (C29): this holding issues no ID at or after end, Unix ms. The node keeps the
// slot until the lease bound, and a restart resumes it without waiting. The local record must already have the same,
// durably. generation is the write count of that record.
func (h *Hold) Stop(ctx context.Context, end int64, generation uint64) error {
	err := h.finish(ctx, func(s *Slot) {
		s.Stopped, s.StoppedAt, s.State = true, end, "stopped"
		s.LeaseUntil = max(s.LeaseUntil, h.LeaseUntil) // an older copy of the record has a lower one (C3)
		s.Generation = generation
	})
	return errors.Join(err, h.co.deleteLiveLock(ctx, h.Worker, h.Node))
}

// Release gives a slot back (C29): any node may take it at once, and issue from end on. The local record must have been
// made invalid before, durably. end is the first timestamp that this holding has not reached, Unix ms. The lease bound
// becomes end, or the floor if that is higher. Only Release lowers a lease bound (C3).
//
// A node that has changed its slot releases the old one. The ticket is the new one's then, and stays.
func (h *Hold) Release(ctx context.Context, end int64) error {
	// it may be free at once
	h.co.Trace.Step("releases", "worker", h.Worker, "term", h.Term, "lease", max(h.Floor, end))
	err := h.finish(ctx, func(s *Slot) {
		s.Released, s.State, s.Ticket = true, "released", ""
		s.LeaseUntil = max(h.Floor, end)
	})
	if err == nil && h.co.hold == h {
		h.co.dropTicket(ctx, h.Ticket, h.Node)
	}
	return errors.Join(err, h.co.deleteLiveLock(ctx, h.Worker, h.Node))
}

// Notice looks whether ZooKeeper has lost data, and says so there (C20). It is for a process that ends without a write
// of its slot: nobody else may have noticed, and its next start may have to do without ZooKeeper.
func (h *Hold) Notice(ctx context.Context) error { return h.finish(ctx, nil) }

// finish changes our slot's record by a versioned write, if it is still ours. If a write is not acknowledged, finish
// reads the record and tries again until ctx ends or the store is closed. change is nil for a look at the record.
func (h *Hold) finish(ctx context.Context, change func(*Slot)) error {
	for {
		err := h.tryFinish(ctx, change)
		switch {
		case err == nil || ctx.Err() != nil || errors.Is(err, store.ErrClosed):
			return err
		case errors.Is(err, store.ErrBadVersion), errors.Is(err, store.ErrNoNode):
		case errors.Is(err, store.ErrUnreachable):
			h.co.pause(ctx)
		default:
			return err
		}
	}
}

func (h *Hold) tryFinish(ctx context.Context, change func(*Slot)) error {
	c := h.co
	// The server may lag behind: an old record must not look like a loss of data.
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	v, err := c.readView(ctx, h.Worker)
	if err != nil {
		return err
	}
	slot := v.slot
	h.recognise(slot)
	if slot != nil && h.carriedBy(*slot) && slot.Released {
		return nil // our earlier write arrived without an acknowledgement
	}
	// As a heartbeat does. Nobody else may have noticed the loss, and our write hides it.
	finding, why := h.judge(v, c.mine)
	if finding == FoundLost || finding == FoundFenced && h.showsLoss(v, c.mine) {
		c.Note(h.lossOf(v.cl, why))
	}
	if err := c.WriteNoted(ctx); err != nil {
		return err
	}
	if slot == nil || !h.carriedBy(*slot) || change == nil {
		return nil // another node has the slot, or it is to stay
	}
	change(slot)
	_, err = c.Store.Set(ctx, SlotPath(h.Worker), slot.marshal(), v.stat.Version)
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
