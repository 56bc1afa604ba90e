package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// Hold is a node's hold on one slot, that is, on a worker. It owns the claim, and what the process has found out about
// the slot since. One goroutine at a time may use it.
//
// A Hold ends when Heartbeat returns a *FencedError, and with Stop or Release.
type Hold struct {
	co *Coordinator
	proof
}

// Enlist returns the Hold of a node that has no slot.
func (c *Coordinator) Enlist(node string) *Hold { return c.Recall(Claim{Owner: Owner{Node: node}}) }

// Another returns a Hold for another slot of the same node, with the same ticket. This one stays the coordinator's
// until the other has acquired a slot.
func (h *Hold) Another() *Hold {
	return &Hold{co: h.co, proof: seek(Claim{Owner: Owner{Node: h.Node}, Ticket: h.Ticket})}
}

// Recall returns the Hold of the claim in the state directory.
func (c *Coordinator) Recall(claim Claim) *Hold {
	c.hold = &Hold{co: c, proof: seek(claim)}
	if claim.Last.Stamp != 0 {
		c.stamped = claim.Last
	}
	return c.hold
}

// View is what a node holds at one moment, and what it may rely on. It must not be changed: goroutines share it.
type View struct {
	// Claim is that on the slot that the node holds. IDs are issued under it if it is EverConfirmed.
	Claim Claim
	// Stage is that of the process. The claim may be confirmed in any: by an earlier process, whose lease bound counts.
	Stage Stage
	// Next is the claim on another slot that the node is acquiring. The local record is about Next then, with its
	// reserved bound, so that the bound of Claim cannot rise meanwhile. nil: none.
	Next  *Claim
	Peers PeersSeen
}

// View returns what the hold is now.
func (h *Hold) View() *View { return &View{Claim: h.Claim, Stage: h.stage, Peers: h.co.seen} }

// Held returns the claim.
func (h *Hold) Held() Claim { return h.Claim }

// Pending reports whether a grant was saved whose outcome is not known.
func (h *Hold) Pending() bool { return h.PendingNonce != "" }

// ConfirmAt returns the earliest time at which the slot may be confirmed, ns of AtLeast.
func (h *Hold) ConfirmAt() int64 { return h.confirmAt }

// Unconfirm saves the claim without its lease: another cluster has taken the place of the claim's.
func (h *Hold) Unconfirm() error {
	h.EverConfirmed, h.LeaseUntil = false, 0
	_, err := h.co.Ledger.Save(h.Claim)
	return err
}

// Save saves the claim again, after an attempt to get another slot has saved another one.
func (h *Hold) Save() error {
	_, err := h.co.Ledger.Save(h.Claim)
	return err
}

// pend begins the next grant of the slot, over the record old, with a new term and nonce. It saves both as pending
// before anything is written to ZooKeeper (C9).
func (h *Hold) pend(old Slot) error {
	claim := h.Claim
	//mutant:c24-term-below-the-one-found by TestTakeAwayOfAnOlderCopy -> claim.PendingTerm = h.Term + 1
	claim.PendingTerm = max(h.Term, old.Term) + 1
	claim.PendingNonce = h.co.Nonce()
	//mutant:c9-written-before-stored by TestStoredBeforeWritten -> gen, err := h.Generation, error(nil)
	gen, err := h.co.Ledger.Save(claim)
	if err != nil { // an earlier grant stays pending
		return fmt.Errorf("saving the claim before writing it to ZooKeeper: %w", err)
	}
	h.becomePending(claim, gen)
	return nil
}

// pendingRecord returns the record of the pending grant, to write over old.
func (h *Hold) pendingRecord(e evidence, cl Cluster, old Slot, lease time.Duration, confirmed bool) Slot {
	slot := h.nextClaim().record(e, cl, old, lease, e.usableHorizon(cl, confirmed))
	slot.State, slot.Confirmed = "confirming", confirmed
	return slot
}

// begin begins to hold the slot of the pending grant: how is the step of the trace. Its write of slot over old was
// decided with e, and is acknowledged: stamped. version is the slot's version since then. The write may continue the
// claim's chain.
func (h *Hold) begin(how string, cl Cluster, e evidence, stamped timeguard.Stamped, old, slot Slot, version int32) {
	h.becomeGranted()
	h.Incarnation = cl.Incarnation
	h.Chain, h.Last = h.Chain.with(stamped, version, h.co.Interval), stamped
	h.compared, h.bound = true, slot.LeaseUntil
	h.co.hold = h
	h.traceGrant(how, cl, e, old, slot, version)
}

// nextClaim returns the claim with the pending grant as its own.
func (c Claim) nextClaim() Claim {
	c.Term, c.Nonce = c.PendingTerm, c.PendingNonce
	c.PendingTerm, c.PendingNonce = 0, ""
	return c
}

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
