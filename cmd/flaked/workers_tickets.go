package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/zkstore"
)

func workersForget() *cli.Command {
	return &cli.Command{
		Name:      "forget-ticket",
		Usage:     "delete unused tickets",
		UsageText: "flaked workers forget-ticket --zk HOST:PORT [NAME...] [flags]",
		ArgsUsage: "[NAME...]",
		Description: `A node creates a ticket when it registers. Its worker's record names it. A node that
is killed while it registers leaves an unused ticket: a few bytes in ZooKeeper, which
do no harm. Without NAME, the command prints the tickets that no worker has. With
names, it deletes these tickets, except those that a worker has. If a node is just
registering with a deleted ticket, it creates another.

Examples:
  flaked workers forget-ticket --zk zk1:2181
  flaked workers forget-ticket --zk zk1:2181 n-0000000012`,
		Flags: append([]cli.Flag{outputFlag()}, zkFlags("")...),
		Action: func(c *cli.Context) error {
			return withStore(c, func(ctx context.Context, store zkstore.Store) error {
				cl, err := coordinator.ReadCluster(ctx, store)
				if err != nil {
					return err
				}
				if c.NArg() == 0 {
					return listTickets(ctx, c, store, cl)
				}
				for _, name := range c.Args().Slice() {
					if err := forgetTicket(ctx, c, store, cl, name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func forgetTicket(ctx context.Context, c *cli.Context, store zkstore.Store, cl coordinator.Cluster, name string) error {
	if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
		return usageError("%q is not the name of a ticket. `flaked workers forget-ticket` without a name lists the tickets", name)
	}
	err := coordinator.ForgetTicket(ctx, store, cl, name)
	if errors.Is(err, zkstore.ErrNoNode) {
		return exitWith(exitFailure, "there is no ticket %s. `flaked workers forget-ticket` without a name lists the tickets", name)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "deleted ticket %s\n", name)
	return err
}

// ticketReport is a ticket in the JSON of `workers forget-ticket`.
type ticketReport struct {
	Ticket string `json:"ticket"`
	Node   string `json:"node"`
	Name   string `json:"name"`
	Host   string `json:"host"`
	// MadeMs is when ZooKeeper created the ticket, by the leader's clock.
	MadeMs int64 `json:"made_ms"`
}

func listTickets(ctx context.Context, c *cli.Context, store zkstore.Store, cl coordinator.Cluster) error {
	entries, err := coordinator.ReadSlots(ctx, store, cl)
	if err != nil {
		return err
	}
	unused, err := coordinator.UnusedTickets(ctx, store, entries)
	if err != nil {
		return err
	}
	tickets := []ticketReport{}
	for _, t := range unused {
		tickets = append(tickets, ticketReport{t.Name, t.Node, t.Labels.Name, t.Host, t.Stat.Ctime})
	}
	switch {
	case asJSON(c):
		return printJSON(c.App.Writer, struct {
			Tickets []ticketReport `json:"tickets"`
		}{tickets})
	case len(tickets) == 0:
		_, err := fmt.Fprintln(c.App.Writer, "there are no unused tickets")
		return err
	}
	var t textTable
	t.add("TICKET", "NAME", "NODE", "HOST", "MADE")
	for _, k := range tickets {
		t.add(clusterview.Clean(k.Ticket), printable(k.Name), printable(k.Node), printable(k.Host), time.UnixMilli(k.MadeMs).UTC().Format(time.RFC3339))
	}
	return t.print(c.App.Writer, false)
}
