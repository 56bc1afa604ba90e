package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "print the workers of a cluster, and their problems",
		Description: `Reads ZooKeeper, and asks the nodes for their own state, at the admin addresses that it
can reach. It changes nothing. A worker is
  live            its holder is connected to ZooKeeper
  disconnected    its holder is not connected, and may serve until its lease expires
  stopped         its holder stopped cleanly, and may come back until its lease expires
  releasing       it was released, and is free when its lease has expired
  record-missing  ZooKeeper lost its record
  free            any node may acquire it; -o json shows it if it was ever held
SAYS is the node's own answer: ready, or why not. CLOCK is the offset of its clock from
that of ZooKeeper's leader: fast is ahead.

Problems follow on standard error, one a line, the worst first, each with what to do.
Critical: a node refuses, is down, or will soon refuse. Warning: IDs are served.
Exits with 0 if all is well, and with 4 after printing problems.

WITHOUT ZOOKEEPER. --addr asks the nodes at these addresses (those for clients), and
does not read ZooKeeper. If ZooKeeper cannot be reached, the command asks the node at
` + defaultAddr + `. REPORT is then the time since ZooKeeper acknowledged the node's last
heartbeat. The exit code is 3 if no node answers, 4 if a node has a problem, else 0.

Examples:
  flaked status --zk zk1:2181,zk2:2181,zk3:2181
  flaked status --addr ids-1:7609 --addr ids-2:7609
  flaked status -o json | jq '.workers[] | select(.state == "live") | .name'`,
		Flags: slices.Concat([]cli.Flag{outputFlag()}, askFlags(), zkFlags(localZK), in(callFlags,
			&cli.StringSliceFlag{Name: "addr", Usage: "ask the node at `HOST:PORT` or unix:/PATH instead of reading " +
				"ZooKeeper. Repeatable"},
		)),
		Action: status,
	}
}

// statusReport is the document of status.
type statusReport struct {
	view.Report
	// Sequences is null if there are none, or if they could not be read.
	Sequences *view.Sequences `json:"sequences"`
	// SequencesError says why they could not be read. It is empty if they were.
	SequencesError string `json:"sequences_error"`
}

func status(c *cli.Context) error {
	nodes, err := nodeAsker(c)
	if err != nil {
		return err
	}
	if c.IsSet("addr") {
		return statusOfAddrs(c, nodes)
	}
	return withStore(c, func(ctx context.Context, st store.Store) error {
		r, err := view.Read(ctx, st, c.String("cluster"))
		if errors.Is(err, store.ErrUnreachable) && ctx.Err() == nil {
			return statusWithoutZooKeeper(c, nodes, err)
		}
		if err != nil {
			return err
		}
		nodes.askWorkers(ctx, r.Workers)
		r.Judge()
		return showStatus(c, withSequences(ctx, st, r))
	})
}

// statusWithoutZooKeeper asks the node on this machine, after ZooKeeper could not be read because of err.
func statusWithoutZooKeeper(c *cli.Context, nodes *asker, err error) error {
	found, cluster := nodes.askStatus(c.Context, defaultAddr)
	if found.Says == nil || cluster != c.String("cluster") {
		return fmt.Errorf("%w. `flaked status --addr HOST:PORT` asks nodes without ZooKeeper", err)
	}
	r := view.AssessNodes(plain(err.Error()), []view.WorkerReport{found}, time.Now())
	return showStatus(c, statusReport{Report: r})
}

// statusOfAddrs asks the nodes of --addr.
func statusOfAddrs(c *cli.Context, nodes *asker) error {
	addrs, err := namedAddrs(c)
	if err := cmp.Or(err, nodes.tlsErr); err != nil {
		return err
	}
	found := make([]view.WorkerReport, len(addrs))
	allAtOnce(len(addrs), func(i int) { found[i], _ = nodes.askStatus(c.Context, addrs[i]) })
	if err := c.Context.Err(); err != nil {
		return err
	}
	return showStatus(c, statusReport{Report: view.AssessNodes("", found, time.Now())})
}

// namedAddrs returns the addresses of --addr, each once.
func namedAddrs(c *cli.Context) (addrs []string, err error) {
	for _, addr := range c.StringSlice("addr") {
		if _, _, err := splitAddr(addr); err != nil {
			return nil, usageError("--addr: %w", err)
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

// sequencesTime bounds the time for which status reads sequences: a cluster may have 100,000 of them.
const sequencesTime = 2 * time.Second

// withSequences adds the named sequences to a report.
func withSequences(ctx context.Context, zk store.Store, r view.Report) statusReport {
	ctx, cancel := context.WithTimeout(ctx, sequencesTime)
	defer cancel()
	doc := statusReport{Report: r}
	found, st, err := seq.Operator{Store: zk}.List(ctx, "")
	switch {
	case errors.Is(err, seq.ErrNoState):
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		doc.SequencesError = fmt.Sprintf("not read within %s", sequencesTime)
	case err != nil:
		doc.SequencesError = view.Clean(plain(err.Error()))
	default:
		doc.Sequences = view.CountSequences(found, st)
	}
	return doc
}

// showStatus prints a report. It returns the error that the command ends with, nil if all is well.
func showStatus(c *cli.Context, r statusReport) error {
	err := show(c, r, r.print)
	answered := func(w view.WorkerReport) bool { return w.Says != nil }
	if r.Source == view.SourceNodes && !slices.ContainsFunc(r.Workers, answered) {
		return errors.Join(err, &codedError{exitUnreachable, &problemsError{"no node answered", r.Summary.Problems}})
	}
	return errors.Join(err, degraded(r.Summary.Problems))
}
