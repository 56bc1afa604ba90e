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
	// Cloned: another process has the memory of this process, and goes on. So this process must keep nothing of what it
	// held.
	Cloned bool
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("this node lost worker %d: %s", e.Worker, e.Reason)
}

// fence gives the slot up: another node or an operator has taken it, or another cluster has taken the place of ours.
// The record found may also show that ZooKeeper has lost ours. Holders that are cut off need a freeze then (C21).
func (c *Coordinator) fence(ctx context.Context, v recordPair, why string) error {
	h := c.holder
	lost := h.showsLoss(v, c.mine)
	if lost {
		c.announceLater(c.lossOf(h, v.cl, why))
		_ = c.AnnounceDue(ctx) // if it fails: Register tries again
	}
	return c.giveUpWithTicket(ctx, why, lost)
}

// giveUpWithTicket gives the slot up together with the ticket. lost: ZooKeeper has lost data.
func (c *Coordinator) giveUpWithTicket(ctx context.Context, why string, lost bool) error {
	c.dropTicket(ctx, c.holder.Ticket, c.holder.Node)
	return c.giveUp(ctx, why, lost)
}

// giveUp deletes the live lock, and returns a *FencedError. lost: ZooKeeper has lost data.
func (c *Coordinator) giveUp(ctx context.Context, why string, lost bool) error {
	h := c.holder
	c.strayLock = h.Worker
	_ = c.dropStrayLock(ctx) // if it fails: Register tries again
	return &FencedError{Worker: h.Worker, Reason: why, Lost: lost}
}
