package coordinator

import (
	"context"
	"fmt"
)

// FencedError: this node has lost the slot and must issue no more IDs for it.
type FencedError struct {
	Worker int
	Reason string
	// Lost: ZooKeeper has lost data.
	Lost bool
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("this node lost worker %d: %s", e.Worker, e.Reason)
}

// fence gives the slot up after another node's record was found. That may also show that ZooKeeper has lost ours.
// Holders that are cut off need a freeze then (C21).
func (h *Hold) fence(ctx context.Context, v view, why string) error {
	lost := h.showsLoss(v, h.co.mine)
	if lost {
		h.co.Note(h.lossOf(v.cl, why))
		_ = h.co.WriteNoted(ctx) // if it fails: Register tries again
	}
	h.co.dropTicket(ctx, h.Ticket, h.Node)
	return h.giveUp(ctx, why, lost)
}

// yields gives up a slot whose record ZooKeeper has lost.
func (h *Hold) yields(ctx context.Context, why string) error {
	h.co.dropTicket(ctx, h.Ticket, h.Node)
	return h.giveUp(ctx, why, true)
}

// giveUp deletes the live lock, and returns a *FencedError. lost: ZooKeeper has lost data.
func (h *Hold) giveUp(ctx context.Context, why string, lost bool) error {
	h.co.strayLock = h.Worker
	_ = h.co.unlock(ctx) // if it fails: Register tries again
	return &FencedError{h.Worker, why, lost}
}
