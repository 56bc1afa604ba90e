package coordinator

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/flaked/flaked/zkstore"
)

// Ticket is a ticket as it is in ZooKeeper.
type Ticket struct {
	Name string // like "n-0000000012"
	Node string // empty if the znode is not a ticket of flaked
	Labels
	Stat zkstore.Stat
}

// TicketInUseError: the holder of a worker registered by this ticket.
type TicketInUseError struct {
	Name   string
	Worker int
	Holder Slot
}

func (e *TicketInUseError) Error() string {
	return fmt.Sprintf("ticket %s belongs to worker %d, which node %s (%s) holds. It is deleted when the node gives up the worker", e.Name, e.Worker, e.Holder.Node, e.Holder.Name)
}

// UnusedTickets returns the tickets that no slot in entries refers to. They are of nodes that
// ended while they registered, or that are registering now. An unused ticket does no harm.
func UnusedTickets(ctx context.Context, store zkstore.Store, entries []Entry) ([]Ticket, error) {
	used := make(map[string]bool)
	for _, e := range entries {
		used[e.Slot.Ticket] = true
	}
	names, err := store.Children(ctx, ticketsPath)
	if err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		if path := ticketsPath + "/" + name; !used[path] {
			paths = append(paths, path)
		}
	}
	var unused []Ticket
	err = eachRecord(ctx, store, paths, func(i int, r zkstore.Record) bool {
		if r.Found {
			t := parseTicket(r.Data)
			unused = append(unused, Ticket{Name: path.Base(paths[i]), Node: t.Node, Labels: t.Labels, Stat: r.Stat})
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("reading the tickets: %w", err)
	}
	return unused, nil
}

// ForgetTicket deletes a ticket that no slot refers to. A node that is registering by it
// creates another. Errors are zkstore.ErrNoNode, *TicketInUseError and those of the store.
func ForgetTicket(ctx context.Context, store zkstore.Store, cl Cluster, name string) error {
	path := ticketsPath + "/" + name
	_, stat, err := store.Get(ctx, path)
	if err != nil {
		return err
	}
	entries, err := ReadSlots(ctx, store, cl)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Slot.Ticket == path {
			return &TicketInUseError{name, e.Worker, e.Slot}
		}
	}
	return store.Delete(ctx, path, stat.Version)
}
