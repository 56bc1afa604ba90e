package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Resume resumes the slot of the local record (C15). It calls check with the clocks of the leader and of the peers,
// then writes the slot with the next term and a new nonce.
//
// The claim's floor is at least the reserved bound then, which the earlier process may have reached (C6). Its lease
// bound is that of the local record: below it the node may issue at once.
//
// Errors include *NotOursError (register as a new node), *OtherClusterError, ErrNoCluster, and those of check, of the
// Ledger and of the store. The node may start from the local record alone only after store.ErrUnreachable,
// store.ErrRefused or a *NotOursError with Lost.
func (c *Coordinator) Resume(ctx context.Context, lease time.Duration, check ClockCheck) (
	confirm time.Duration, _ error,
) {
	h := c.holder
	if err := c.AnnounceDue(ctx); err != nil {
		return 0, err
	}
	if _, err := c.readToResume(ctx); err != nil {
		return 0, err
	}
	ticket := h.Ticket
	clock, err := c.touchTicket(ctx, &h.Claim)
	if err != nil {
		return 0, err
	}
	c.reading = clock
	if err = c.checkClocks(ctx, h.Worker, check); err == nil {
		confirm, err = c.writeResumed(ctx, lease)
	}
	if err != nil && h.Ticket != ticket && !errors.Is(err, store.ErrUnreachable) {
		c.dropTicket(ctx, h.Ticket, h.Node)
		h.Ticket = ticket
	}
	return confirm, err
}

// readToResume reads the cluster's record and the slot. It returns an error if the claim does not hold the slot. It
// notes a grant that arrived unacknowledged, and keeps a loss for the next AnnounceDue.
func (c *Coordinator) readToResume(ctx context.Context) (recordPair, error) {
	h := c.holder
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return recordPair{}, err
	}
	v, err := c.readPair(ctx, h.Worker)
	if err == nil {
		err = v.checkCluster(c.mine)
	}
	if err != nil {
		return recordPair{}, err
	}
	h.recognise(v.slot)
	err = mayResume(v.slot, h.Claim)
	var no *NotOursError
	if errors.As(err, &no) && h.Nonce != "" && (no.Lost || h.showsLoss(v, c.mine)) {
		c.announceLater(c.lossOf(h, v.cl, no.Reason))
	}
	return v, err
}

// writeResumed reads the slot again, and writes it. It tries again if a record has changed meanwhile. If ZooKeeper has
// older data than the claim, writeResumed raises the incarnation first.
func (c *Coordinator) writeResumed(ctx context.Context, lease time.Duration) (time.Duration, error) {
	h := c.holder
	for {
		v, err := c.readToResume(ctx)
		if err != nil {
			return 0, err
		}
		finding, why := h.finding(v, c.mine)
		c.noteCluster(*v.cl)
		if finding == FoundLost {
			cl, err := c.announce(ctx, c.lossOf(h, v.cl, why))
			switch {
			case mustReread(err):
				continue
			case err != nil:
				return 0, err
			}
			v.cl = &cl
		}
		// Above all that the process before may have used (C6).
		//mutant:c6-resume-at-now by sim -> h.Floor = c.Now()
		h.Floor = max(h.Floor, h.ReservedUntil)
		confirm, err := c.writeNextTerm(ctx, v, lease)
		if !mustReread(err) {
			return confirm, err
		}
	}
}

// NotOursError: this node cannot prove that it still holds the slot of its local record. It must register as a new
// node.
type NotOursError struct {
	Worker int
	Reason string
	// Lost: ZooKeeper has lost the slot's record, by slotFinding. A holder whose confirmed lease still runs may
	// restore it.
	Lost bool
}

func (e *NotOursError) Error() string {
	return fmt.Sprintf("this node no longer holds worker %d: %s", e.Worker, e.Reason)
}

// mayResume returns nil if a starting node still holds the slot of its local record (C15), else a *NotOursError.
func mayResume(found *Slot, claim Claim) error {
	no := func(format string, a ...any) error {
		return &NotOursError{claim.Worker, fmt.Sprintf(format, a...), slotFinding(found, claim) == FoundLost}
	}
	switch {
	case found == nil:
		return no("ZooKeeper has no record of the worker")
	case found.Released && claim.Nonce == "":
		return no("this node never acquired the worker: its write did not reach ZooKeeper")
	case found.Released:
		return no("the worker was released")
	case !claim.carriedBy(*found):
		return no("%s", found.holderText(claim.Term))
	//mutant:c15-old-copy-resumed by sim -> case false:
	case found.Generation > claim.Generation:
		return no("the state file is an old copy: ZooKeeper has seen generation %d, the file has generation %d",
			found.Generation, claim.Generation)
	}
	return nil
}
