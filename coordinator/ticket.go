package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ticket is what a ticket holds: the registration of one node identity. Its
// name carries the number that ZooKeeper gave it, its times are the leader's.
type ticket struct {
	Node string `json:"node"`
	Labels
}

// readClock reads the leader's clock off a write to the claim's ticket, which
// is drawn if there is none: the one write that a node may make before its
// clock has been checked.
func (c *Coordinator) readClock(ctx context.Context, claim *Claim) (Reading, error) {
	if claim.Ticket == "" {
		return c.drawTicket(ctx, claim)
	}
	sent := c.Now()
	stat, err := c.Store.Set(ctx, claim.Ticket, c.ticket(*claim), AnyVersion)
	if errors.Is(err, ErrNoNode) {
		return c.drawTicket(ctx, claim)
	}
	return Reading{Sent: sent, Acked: c.Now(), Stamp: stat.Mtime}, err
}

func (c *Coordinator) ticket(claim Claim) []byte {
	return mustMarshal(ticket{Node: claim.Node, Labels: c.Labels})
}

func (c *Coordinator) drawTicket(ctx context.Context, claim *Claim) (Reading, error) {
	sent := c.Now()
	name, err := c.Store.Create(ctx, ticketPrefix, c.ticket(*claim), PersistentSequential)
	acked := c.Now()
	if errors.Is(err, ErrNoNode) {
		// The parent is gone. The numbers begin again, and slots are what counts.
		if err = c.Store.EnsureRoot(ctx); err == nil {
			return c.drawTicket(ctx, claim)
		}
	}
	if errors.Is(err, ErrUnreachable) {
		// It may have been made all the same, and a second one would stay for ever.
		name, err = c.findTicket(ctx, claim.Node, err)
	}
	if err != nil {
		return Reading{}, err
	}
	claim.Ticket = name
	_, stat, err := c.Store.Get(ctx, name)
	return Reading{Sent: sent, Acked: acked, Stamp: stat.Ctime}, err
}

// findTicket looks for a node's ticket whose making was not acknowledged.
func (c *Coordinator) findTicket(ctx context.Context, node string, cause error) (string, error) {
	names, err := c.Store.Children(ctx, ticketsPath)
	if err != nil {
		return "", cause
	}
	for i := len(names) - 1; i >= 0; i-- {
		name := ticketsPath + "/" + names[i]
		data, _, err := c.Store.Get(ctx, name)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return "", cause
		}
		var t ticket
		if json.Unmarshal(data, &t) == nil && t.Node == node {
			return name, nil
		}
	}
	return "", cause
}

// cleanupTime is what a clean-up may take after our own time is up.
const cleanupTime = 2 * time.Second

// dropTicket deletes a ticket that registers nobody any more. One that stays
// is a few bytes of clutter, so a failure is only logged.
func (c *Coordinator) dropTicket(ctx context.Context, name string) {
	if name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err := c.Store.Delete(ctx, name, AnyVersion); err != nil && !errors.Is(err, ErrNoNode) {
		c.Logger.Warn("a ticket was left behind", "ticket", name, "error", err)
	}
}
