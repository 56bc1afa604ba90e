package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// ticket is the contents of a ticket, the persistent-sequential znode that registers a node. ZooKeeper puts its number
// into its name and the leader's time into its stat.
type ticket struct {
	Node string `json:"node"`
	Labels
}

// touchTicket writes the claim's ticket, or creates one, and compares our clock with the leader's time of that write. A
// node writes no slot before its clock has been checked by that. AnnounceDue may come first, because announce goes by
// the leader's time, too. touchTicket sets claim.Ticket and c.lastWrite.
func (c *Coordinator) touchTicket(ctx context.Context, claim *Claim) (Reading, error) {
	if claim.Ticket != "" {
		holder, err := c.ticketHolder(ctx, claim.Ticket)
		if err == nil && holder == claim.Node {
			sent := c.Now()
			var stat store.Stat
			stat, err = c.Store.Set(ctx, claim.Ticket, c.ticket(*claim), store.AnyVersion)
			if err == nil {
				c.lastWrite = stat
				return Reading{Sent: sent, Acked: c.Now(), Stamp: stat.Mtime}, nil
			}
		}
		if err != nil && !errors.Is(err, store.ErrNoNode) {
			return Reading{}, err
		}
	}
	return c.drawTicket(ctx, claim)
}

func (c *Coordinator) ticket(claim Claim) []byte {
	return store.Marshal(ticket{Node: claim.Node, Labels: c.Labels})
}

// parseTicket returns a ticket's contents, zero if it is not one of ours.
func parseTicket(data []byte) (t ticket) {
	_ = json.Unmarshal(data, &t)
	return t
}

// ticketHolder returns the node that a ticket registers. If ZooKeeper lost the tickets, their numbers began again, so a
// ticket of ours may have the name of another node's.
func (c *Coordinator) ticketHolder(ctx context.Context, name string) (string, error) {
	data, _, err := c.Store.Get(ctx, name)
	if err != nil {
		return "", err
	}
	return parseTicket(data).Node, nil
}

// drawTicket creates a ticket, or finds the one whose creation was not acknowledged.
func (c *Coordinator) drawTicket(ctx context.Context, claim *Claim) (Reading, error) {
	if c.unackedTicketOf == claim.Node {
		name, err := c.findTicket(ctx, claim.Node)
		if err != nil {
			return Reading{}, err
		}
		c.unackedTicketOf = ""
		if name != "" {
			claim.Ticket = name
			return c.touchTicket(ctx, claim)
		}
	}
	sent := c.Now()
	name, err := c.Store.Create(ctx, ticketPrefix, c.ticket(*claim), store.PersistentSequential)
	if errors.Is(err, store.ErrExists) {
		// ZooKeeper's counter has reached its end. The number only decides where the search for a slot starts, so a
		// random one does as well.
		path := fmt.Sprintf("%s%010d", ticketPrefix, rand.Int32())
		name, err = c.Store.Create(ctx, path, c.ticket(*claim), store.Persistent)
	}
	acked := c.Now()
	switch {
	case errors.Is(err, store.ErrNoNode):
		// The parent is missing. The numbers begin again.
		if err := ensureRoot(ctx, c.Store); err != nil {
			return Reading{}, err
		}
		return c.drawTicket(ctx, claim)
	case errors.Is(err, store.ErrUnreachable):
		c.unackedTicketOf = claim.Node
	}
	if err != nil {
		return Reading{}, err
	}
	claim.Ticket = name
	_, stat, err := c.Store.Get(ctx, name)
	if err != nil {
		return Reading{}, err
	}
	c.lastWrite = stat
	return Reading{Sent: sent, Acked: acked, Stamp: stat.Ctime}, nil
}

// lookBack is the number of newest tickets that findTicket reads.
const lookBack = 1000

// findTicket returns the path of a node's ticket whose creation was not acknowledged, or "" if it finds none. A second
// ticket would never be deleted. A request that is still under way may create one after findTicket has looked.
func (c *Coordinator) findTicket(ctx context.Context, node string) (string, error) {
	if err := c.Store.Sync(ctx, ticketsPath); err != nil && !errors.Is(err, store.ErrNoNode) {
		return "", err
	}
	names, err := c.Store.Children(ctx, ticketsPath)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		return "", err
	}
	for _, name := range slices.Backward(names[max(0, len(names)-lookBack):]) {
		holder, err := c.ticketHolder(ctx, ticketsPath+"/"+name)
		if err != nil && !errors.Is(err, store.ErrNoNode) {
			return "", err
		}
		if holder == node {
			return ticketsPath + "/" + name, nil
		}
	}
	return "", nil
}

// cleanupTime is the time limit of a clean-up. It counts also if ctx has ended.
const cleanupTime = 2 * time.Second

// dropTicket deletes a node's ticket. A ticket that stays wastes a few bytes only, so a failure is only logged.
func (c *Coordinator) dropTicket(ctx context.Context, name, node string) {
	if name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	holder, err := c.ticketHolder(ctx, name)
	if err == nil && holder == node {
		err = c.Store.Delete(ctx, name, store.AnyVersion)
	}
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		c.Logger.Warn("a ticket was left behind", "ticket", name, "error", err)
	}
}
