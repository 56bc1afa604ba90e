package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "print the workers of a cluster, and their problems",
		Description: `Reads ZooKeeper, and asks the nodes that it can reach at their admin addresses for
their own state (in less than a second; --no-ask skips that). It changes nothing. A
worker is
  live            its holder is connected to ZooKeeper
  disconnected    its holder is not connected, and may serve until its lease expires
  stopped         its holder stopped cleanly, and may come back until its lease expires
  releasing       it was released, and is free when its lease has expired
  record-missing  ZooKeeper lost its record
  free            any node may acquire it; -o json shows it if it was ever held
SAYS is the node's own answer: ready, or why not. CLOCK is the offset of its clock from
that of ZooKeeper's leader, for live nodes with a recent report: fast is ahead. Ages
are by this machine's clock, unless the reports show that this clock is wrong.

Problems follow on standard error, one a line, the worst first, each with what to do.
Critical: a node refuses, is down, or will soon refuse. Warning: IDs are served.
Exits with 0 if all is well, and with 4 after printing problems. A line below the table
counts the named sequences, and does not change the exit code.

WITHOUT ZOOKEEPER. --addr asks the nodes at these addresses (those for clients), and
does not read ZooKeeper. If ZooKeeper cannot be reached, the command asks the node at
` + defaultAddr + `. REPORT is then the time since ZooKeeper acknowledged the node's last
heartbeat. The exit code is 3 if no node answers, 4 if a node has a problem, else 0.

To print it again and again: watch -n 2 flaked status.

Examples:
  flaked status --zk zk1:2181,zk2:2181,zk3:2181
  flaked status --addr ids-1:7609 --addr ids-2:7609
  flaked status -o json | jq '.workers[] | select(.state == "live") | .name'`,
		Flags: slices.Concat([]cli.Flag{outputFlag()}, askFlags(), zkFlags(localZK), in(callFlags,
			&cli.StringSliceFlag{Name: "addr", Usage: "ask the node at `HOST:PORT` or unix:/PATH instead of reading ZooKeeper. Repeatable"},
		)),
		Action: status,
	}
}

// statusReport is the document of status.
type statusReport struct {
	view.Report
	sequencesRead
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
		r, err := readStatus(ctx, st, c.String("cluster"), nodes)
		if err == nil {
			return showStatus(c, statusReport{r, readSequences(ctx, st)})
		}
		if ctx.Err() != nil || nodes == nil || !errors.Is(err, store.ErrUnreachable) {
			return err
		}
		found, cluster := nodes.askStatus(ctx, target{addr: defaultAddr})
		if found.Says == nil || cluster != c.String("cluster") {
			return fmt.Errorf("%w. `flaked status --addr HOST:PORT` asks nodes without ZooKeeper", err)
		}
		return showStatus(c, statusReport{Report: view.AssessNodes(plain(err.Error()), []view.WorkerReport{found}, time.Now())})
	})
}

// statusOfAddrs asks the nodes of --addr.
func statusOfAddrs(c *cli.Context, nodes *asker) error {
	if nodes == nil {
		return usageError("--addr asks nodes, and --no-ask asks none. Leave one out")
	}
	targets, err := namedTargets(c.StringSlice("addr"))
	if err != nil {
		return err
	}
	if nodes.access.err != nil {
		return nodes.access.err
	}
	found := make([]view.WorkerReport, len(targets))
	allAtOnce(len(targets), func(i int) { found[i], _ = nodes.askStatus(c.Context, targets[i]) })
	if err := c.Context.Err(); err != nil {
		return err
	}
	return showStatus(c, statusReport{Report: view.AssessNodes("", found, time.Now())})
}

// showStatus prints a report. It returns the error that the command ends with, nil if all is well.
func showStatus(c *cli.Context, r statusReport) error {
	err := show(c, r, func(w io.Writer) error { return r.print(w) })
	answered := func(w view.WorkerReport) bool { return w.Says != nil || w.Asked == view.NoStatus }
	if r.Source == view.SourceNodes && !slices.ContainsFunc(r.Workers, answered) {
		return errors.Join(err, &codedError{exitUnreachable, &problemsError{"no node answered", r.Summary.Problems}})
	}
	return errors.Join(err, degraded(r.Summary.Problems))
}

// readStatus reads ZooKeeper. It also asks the nodes, unless nodes is nil.
func readStatus(ctx context.Context, st store.Store, name string, nodes *asker) (view.Report, error) {
	r, err := view.Read(ctx, st, name)
	if err != nil {
		return r, err
	}
	if nodes != nil {
		nodes.ask(ctx, r.Workers)
		r.Summary.Asked = true
	}
	r.Judge()
	return r, nil
}
