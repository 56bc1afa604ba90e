package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Stop marks a slot as cleanly stopped (C29): this tenure issues no ID at or after end, Unix ms. The node keeps the
// slot until the lease bound, and a restart resumes it without waiting. The local record must already have the same,
// durably. generation is the write count of that record.
//
// After a *FencedError a clone of this process holds the slot (C33): Stop has written nothing, and no restart may
// resume the slot. The same holds for Release, ReleaseOld and LookForLoss.
func (c *Coordinator) Stop(ctx context.Context, end int64, generation uint64) error {
	h := c.holder
	return c.unlock(ctx, h, c.finish(ctx, h, func(s *Slot) {
		s.Stopped, s.StoppedAt, s.Phase = true, end, "stopped"
		s.LeaseUntil = max(s.LeaseUntil, h.LeaseUntil) // an older copy of the record has a lower one (C3)
		s.Generation = generation
	}))
}

// Release gives a slot back (C29): any node may take it at once, and issue from end on. The local record must have been
// made invalid before, durably. end is the first timestamp that this tenure has not reached, Unix ms. The lease bound
// becomes end, or the floor if that is higher. No other write but ReleaseOld lowers a holder's lease bound (C3). Thaw
// and writeRestored may lower that of a stand-in.
func (c *Coordinator) Release(ctx context.Context, end int64) error {
	err := c.release(ctx, c.holder, end)
	if err == nil {
		c.dropTicket(ctx, c.holder.Ticket, c.holder.Node)
	}
	return c.unlock(ctx, c.holder, err)
}

// ReleaseOld gives a slot back that the node has left, as Release does. The ticket is the new slot's, and stays.
func (c *Coordinator) ReleaseOld(ctx context.Context, old OldSlot, end int64) error {
	return c.unlock(ctx, old.holder, c.release(ctx, old.holder, end))
}

// unlock deletes the live lock of a slot, for which finish has returned err. It returns both errors. If finish has
// found a clone, the live lock is the other process's, and stays (C33).
func (c *Coordinator) unlock(ctx context.Context, h *holderState, err error) error {
	if _, cloned := errors.AsType[*FencedError](err); cloned {
		return err
	}
	return errors.Join(err, c.deleteLiveLock(ctx, h.Worker, h.Node))
}

func (c *Coordinator) release(ctx context.Context, h *holderState, end int64) error {
	// it may be free at once
	c.Trace.Step("releases", "worker", h.Worker, "term", h.Term, "lease", max(h.Floor, end))
	return c.finish(ctx, h, func(s *Slot) {
		s.Released, s.Phase, s.Ticket = true, "released", ""
		s.LeaseUntil = max(h.Floor, end)
	})
}

// LookForLoss looks whether ZooKeeper has lost data, and announces that (C20). It is for a process that ends without a
// write of its slot: nobody else may have noticed, and its next start may have to do without ZooKeeper.
func (c *Coordinator) LookForLoss(ctx context.Context) error { return c.finish(ctx, c.holder, nil) }

// finish changes our slot's record by a versioned write, if it is still ours. If a write is not acknowledged, finish
// reads the record and tries again until ctx ends or the store is closed. change is nil for a look at the record. If a
// clone of this process has written the record, finish writes nothing and returns a *FencedError.
func (c *Coordinator) finish(ctx context.Context, h *holderState, change func(*Slot)) error {
	for {
		err := c.tryFinish(ctx, h, change)
		switch {
		case err == nil || ctx.Err() != nil || errors.Is(err, store.ErrClosed):
			return err
		case errors.Is(err, store.ErrBadVersion), errors.Is(err, store.ErrNoNode):
		case errors.Is(err, store.ErrUnreachable):
			c.pause(ctx)
		default:
			return err
		}
	}
}

func (c *Coordinator) tryFinish(ctx context.Context, h *holderState, change func(*Slot)) error {
	// The server may lag behind: an old record must not look like a loss of data.
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	v, err := c.readPair(ctx, h.Worker)
	if err != nil {
		return err
	}
	slot := v.slot
	h.recognise(slot)
	if slot != nil && h.carriedBy(*slot) && slot.Released {
		return nil // our earlier write arrived without an acknowledgement
	}
	// Look for a loss, as a heartbeat does: nobody else may have noticed it, and our write hides it.
	finding, why := h.finding(v, c.mine)
	if finding == FoundCloned {
		//mutant:c33-stop-takes-a-clone-for-success by TestStopOfACloneLeavesAllToTheOther -> return nil
		return &FencedError{Worker: h.Worker, Reason: why, Cloned: true}
	}
	if finding == FoundLost || finding == FoundFenced && h.showsLoss(v, c.mine) {
		c.announceLater(c.lossOf(h, v.cl, why))
	}
	if err := c.AnnounceDue(ctx); err != nil {
		return err
	}
	if slot == nil || !h.carriedBy(*slot) || change == nil {
		return nil // another node has the slot, or there is nothing to write
	}
	change(slot)
	_, err = c.Store.Set(ctx, SlotPath(h.Worker), slot.marshal(), v.slotStat.Version)
	if err != nil && !store.Outpaced(err) {
		h.noteUnacked(v.slotStat.Version + 1)
	}
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
