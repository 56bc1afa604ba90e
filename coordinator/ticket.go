package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// ticket is what a ticket holds: the registration of one node identity. Its
// name carries the number that ZooKeeper gave it, its times are the leader's.
type ticket struct {
	Node string `json:"node"`
	Labels
}

// touchTicket writes the claim's ticket, or draws one if it has none, and reads the
// leader's clock off that write: the only one that a node may make before its clock has
// been checked. It sets claim.Ticket, c.latest and c.reading.
func (c *Coordinator) touchTicket(ctx context.Context, claim *Claim) (Reading, error) {
	if claim.Ticket != "" {
		holder, err := c.ticketHolder(ctx, claim.Ticket)
		if err == nil && holder == claim.Node {
			sent := c.Now()
			var stat zkstore.Stat
			stat, err = c.Store.Set(ctx, claim.Ticket, c.ticket(*claim), zkstore.AnyVersion)
			if err == nil {
				return c.setReading(sent, stat), nil
			}
		}
		if err != nil && !errors.Is(err, zkstore.ErrNoNode) {
			return Reading{}, err
		}
	}
	return c.drawTicket(ctx, claim)
}

func (c *Coordinator) ticket(claim Claim) []byte {
	return mustMarshal(ticket{Node: claim.Node, Labels: c.Labels})
}

// parseTicket returns a ticket's contents, zero if it is not one of ours.
func parseTicket(data []byte) (t ticket) {
	_ = json.Unmarshal(data, &t)
	return t
}

// ticketHolder is the node that a ticket registers. Where the parent was made
// again the numbers began again, so a ticket that we know by name may be
// another's by now.
func (c *Coordinator) ticketHolder(ctx context.Context, name string) (string, error) {
	data, _, err := c.Store.Get(ctx, name)
	if err != nil {
		return "", err
	}
	return parseTicket(data).Node, nil
}

func (c *Coordinator) drawTicket(ctx context.Context, claim *Claim) (Reading, error) {
	if c.unsure == claim.Node {
		name, err := c.findTicket(ctx, claim.Node)
		if err != nil {
			return Reading{}, err
		}
		c.unsure = ""
		if name != "" {
			claim.Ticket = name
			return c.touchTicket(ctx, claim)
		}
	}
	sent := c.Now()
	name, err := c.Store.Create(ctx, ticketPrefix, c.ticket(*claim), zkstore.PersistentSequential)
	if errors.Is(err, zkstore.ErrExists) {
		// The counter has come to its end. Slots are what counts, so a number
		// by chance is as good.
		name, err = c.Store.Create(ctx, fmt.Sprintf("%s%010d", ticketPrefix, rand.Int32()), c.ticket(*claim), zkstore.Persistent)
	}
	acked := c.Now()
	switch {
	case errors.Is(err, zkstore.ErrNoNode):
		// The parent is gone. The numbers begin again.
		if err := ensureRoot(ctx, c.Store); err != nil {
			return Reading{}, err
		}
		return c.drawTicket(ctx, claim)
	case errors.Is(err, zkstore.ErrUnreachable):
		c.unsure = claim.Node
	}
	if err != nil {
		return Reading{}, err
	}
	claim.Ticket = name
	_, stat, err := c.Store.Get(ctx, name)
	if err != nil {
		return Reading{}, err
	}
	clock := Reading{Sent: sent, Acked: acked, Stamp: stat.Ctime}
	c.latest, c.reading = stat, clock
	return clock, nil
}

// lookBack is how many of the newest tickets are searched for one of ours.
const lookBack = 1000

// findTicket looks for a node's ticket whose making was not acknowledged: it
// may have been made all the same, and a second one would stay for ever. "" when
// there is none (yet: a request that is still under way leaves one behind).
func (c *Coordinator) findTicket(ctx context.Context, node string) (string, error) {
	if err := c.Store.Sync(ctx, ticketsPath); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return "", err
	}
	names, err := c.Store.Children(ctx, ticketsPath)
	if err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return "", err
	}
	for _, name := range slices.Backward(names[max(0, len(names)-lookBack):]) {
		holder, err := c.ticketHolder(ctx, ticketsPath+"/"+name)
		if err != nil && !errors.Is(err, zkstore.ErrNoNode) {
			return "", err
		}
		if holder == node {
			return ticketsPath + "/" + name, nil
		}
	}
	return "", nil
}

// giveBackTicket is for one that was drawn in an attempt that failed, whose
// caller does not learn of it. Where ZooKeeper does not answer it is found
// again by the next.
func (c *Coordinator) giveBackTicket(ctx context.Context, claim Claim, why error) {
	if errors.Is(why, zkstore.ErrUnreachable) {
		c.unsure = claim.Node
		return
	}
	c.dropTicket(ctx, claim.Ticket, claim.Node)
}

// cleanupTime is what a clean-up may take after our own time is up.
const cleanupTime = 2 * time.Second

// dropTicket deletes a node's ticket that registers it no more. One that stays
// is a few bytes of clutter, so a failure is only logged.
func (c *Coordinator) dropTicket(ctx context.Context, name, node string) {
	if name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	holder, err := c.ticketHolder(ctx, name)
	if err == nil && holder == node {
		err = c.Store.Delete(ctx, name, zkstore.AnyVersion)
	}
	if err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		c.Logger.Warn("a ticket was left behind", "ticket", name, "error", err)
	}
}
