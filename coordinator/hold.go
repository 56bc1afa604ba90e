package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Enlist makes the node one that has no slot, with a new identity.
func (c *Coordinator) Enlist(node string) { c.Recall(Claim{Owner: Owner{Node: node}}) }

// Recall makes the claim of the state directory the node's.
func (c *Coordinator) Recall(claim Claim) {
	c.hold = new(seek(claim))
	if claim.Last.Stamp != 0 {
		c.stamped = claim.Last
	}
}

// View has the claim of a node at one moment, and what the node then knew of its peers. Goroutines share a View, so
// nobody may change it.
type View struct {
	// Claim is the claim on the slot that the node holds. The node issues IDs under the claim if it is EverConfirmed.
	Claim Claim
	// Stage is the stage of this process. In each stage the claim may be confirmed: an earlier process has confirmed it,
	// and the lease bound of that process counts.
	Stage Stage
	// Next is the claim on another slot that the node is acquiring. The local record is about Next then, with its
	// reserved bound, so that the bound of Claim cannot rise meanwhile. nil: none.
	Next  *Claim
	Peers PeersSeen
}

// View returns what the node holds now.
func (c *Coordinator) View() *View {
	return &View{Claim: c.hold.Claim, Stage: c.hold.stage, Peers: c.seen}
}

// Claim returns what the local record must say of the slot that the node holds.
func (c *Coordinator) Claim() Claim { return c.hold.Claim }

// Pending reports whether a grant was saved whose outcome is not known.
func (c *Coordinator) Pending() bool { return c.hold.PendingNonce != "" }

// ConfirmAt returns the earliest time at which the slot may be confirmed, ns of AtLeast.
func (c *Coordinator) ConfirmAt() int64 { return c.hold.confirmAt }

// GoAlone makes the process go on from the state directory, without ZooKeeper (C16). reserved is the reserved bound
// there, which the process before may have reached, Unix ms, and generation the write count of the record: ZooKeeper's
// must not be higher. The floor is saved when a lease had run out (C26), and may be above what was reserved before.
func (c *Coordinator) GoAlone(reserved int64, generation uint64) {
	c.hold.becomeAlone(reserved, generation)
}

// Unconfirm saves the claim without its lease: another cluster has taken the place of the claim's.
func (c *Coordinator) Unconfirm() error {
	c.hold.becomeUnleased()
	return c.Save()
}

// Save saves the claim again, after an attempt to get another slot has saved another one.
func (c *Coordinator) Save() error {
	_, err := c.Ledger.Save(c.hold.Claim)
	return err
}

// Stop marks a slot as cleanly stopped (C29): this holding issues no ID at or after end, Unix ms. The node keeps the
// slot until the lease bound, and a restart resumes it without waiting. The local record must already have the same,
// durably. generation is the write count of that record.
func (c *Coordinator) Stop(ctx context.Context, end int64, generation uint64) error {
	h := c.hold
	err := c.finish(ctx, h, func(s *Slot) {
		s.Stopped, s.StoppedAt, s.State = true, end, "stopped"
		s.LeaseUntil = max(s.LeaseUntil, h.LeaseUntil) // an older copy of the record has a lower one (C3)
		s.Generation = generation
	})
	return errors.Join(err, c.deleteLiveLock(ctx, h.Worker, h.Node))
}

// Release gives a slot back (C29): any node may take it at once, and issue from end on. The local record must have been
// made invalid before, durably. end is the first timestamp that this holding has not reached, Unix ms. The lease bound
// becomes end, or the floor if that is higher. Only Release lowers a lease bound (C3).
func (c *Coordinator) Release(ctx context.Context, end int64) error {
	err := c.release(ctx, c.hold, end)
	if err == nil {
		c.dropTicket(ctx, c.hold.Ticket, c.hold.Node)
	}
	return errors.Join(err, c.deleteLiveLock(ctx, c.hold.Worker, c.hold.Node))
}

// ReleaseLeft gives a slot back that the node has left, as Release does. The ticket is the new slot's, and stays.
func (c *Coordinator) ReleaseLeft(ctx context.Context, l Left, end int64) error {
	err := c.release(ctx, l.hold, end)
	return errors.Join(err, c.deleteLiveLock(ctx, l.hold.Worker, l.hold.Node))
}

func (c *Coordinator) release(ctx context.Context, h *proof, end int64) error {
	// it may be free at once
	c.Trace.Step("releases", "worker", h.Worker, "term", h.Term, "lease", max(h.Floor, end))
	return c.finish(ctx, h, func(s *Slot) {
		s.Released, s.State, s.Ticket = true, "released", ""
		s.LeaseUntil = max(h.Floor, end)
	})
}

// Notice looks whether ZooKeeper has lost data, and says so there (C20). It is for a process that ends without a write
// of its slot: nobody else may have noticed, and its next start may have to do without ZooKeeper.
func (c *Coordinator) Notice(ctx context.Context) error { return c.finish(ctx, c.hold, nil) }

// finish changes our slot's record by a versioned write, if it is still ours. If a write is not acknowledged, finish
// reads the record and tries again until ctx ends or the store is closed. change is nil for a look at the record.
func (c *Coordinator) finish(ctx context.Context, h *proof, change func(*Slot)) error {
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

func (c *Coordinator) tryFinish(ctx context.Context, h *proof, change func(*Slot)) error {
	// The server may lag behind: an old record must not look like a loss of data.
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	v, err := c.readRecorded(ctx, h.Worker)
	if err != nil {
		return err
	}
	slot := v.slot
	h.recognise(slot)
	if slot != nil && h.carriedBy(*slot) && slot.Released {
		return nil // our earlier write arrived without an acknowledgement
	}
	// As a heartbeat does. Nobody else may have noticed the loss, and our write hides it.
	finding, why := h.finding(v, c.mine)
	if finding == FoundLost || finding == FoundFenced && h.showsLoss(v, c.mine) {
		c.Note(c.lossOf(h, v.cl, why))
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
