package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/poll"
	"github.com/flaked/flaked/internal/ops/words"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "say whether a cluster is healthy, and print its workers",
		Description: `Reads ZooKeeper, and asks the nodes for their own state, at those of their addresses for
clients that it can reach. It changes nothing. A worker is
  live            its holder is connected to ZooKeeper
  disconnected    its holder is not connected, and may serve until its lease expires
  stopped         its holder stopped cleanly, and may come back until its lease expires
  releasing       it was released, and is free when its lease has expired
  record-missing  ZooKeeper lost its record
  free            any node may acquire it; -o json shows it if it was ever held
SAYS is the node's own answer: ready, or why not. CLOCK is the offset of its clock from
that of ZooKeeper's leader: fast is ahead.

The first line is the verdict. The problems follow, the worst first, each with what it
means for clients and what to do. Critical: clients get errors, or soon will, or IDs may
repeat. Warning: something needs attention. Sequences are named only if they have a
problem. Exits with 0 if all is well, and with 4 after printing problems.

WITHOUT ZOOKEEPER. --addr asks the nodes at these addresses (those for clients), and
does not read ZooKeeper. If ZooKeeper cannot be reached, the command asks the node of
this machine: FLAKED_ADDR, or the first address of listen, or ` + defaultAddr + `.
REPORT is then the time since ZooKeeper acknowledged the node's last heartbeat. The exit
code is 3 if no node answers, 4 if a node has a problem, else 0. Addresses of two
clusters are an error. With --cluster, a node of another one has failed.

Examples:
  flaked status --zk zk1:2181,zk2:2181,zk3:2181
  flaked status --addr ids-1:7609 --addr ids-2:7609
  flaked status -o json | jq '.workers[] | select(.state == "live") | .name'`,
		Flags: slices.Concat([]cli.Flag{outputFlag()}, surveyAccessFlags(), zkFlags(localZK), inCategory(
			categoryCommandLineOnly,
			&cli.StringSliceFlag{Name: "addr", Usage: "ask the node at `HOST:PORT` or unix:/PATH instead of reading " +
				"ZooKeeper. Repeatable"},
		)),
		Action: status,
	}
}

func status(c *cli.Context) error {
	nodes, err := readAsker(c)
	if err != nil {
		return err
	}
	if c.IsSet("addr") {
		return statusOfAddrs(c, nodes)
	}
	return withStore(c, func(st store.Store) error {
		d, err := health.ReadDraft(c.Context, st, c.String("cluster"))
		if errors.Is(err, store.ErrUnreachable) && c.Context.Err() == nil {
			return statusWithoutZooKeeper(c, nodes, err)
		}
		if err != nil {
			return err
		}
		nodes.AskWorkers(c.Context, d.Cluster, d.Workers)
		d.ReadSequences(c.Context, st)
		return showStatus(c, d.Complete())
	})
}

// statusWithoutZooKeeper asks the node on this machine, after ZooKeeper could not be read because of err.
// Without ZooKeeper, only the name of the cluster is known, so it is all that can be compared.
func statusWithoutZooKeeper(c *cli.Context, nodes *poll.Asker, err error) error {
	own := ownNode(c)
	found, cluster := nodes.AskAt(c.Context, own)
	if found.Says == nil || cluster.Name != c.String("cluster") {
		return fmt.Errorf("%w. No node of this cluster answers at %s either: `flaked status --addr HOST:PORT` asks "+
			"another one", err, own)
	}
	r := health.AssessNodes(words.PlainError(err.Error()), []health.AskedNode{found}, time.Now())
	return showStatus(c, r)
}

func statusOfAddrs(c *cli.Context, nodes *poll.Asker) error {
	addrs, err := readAddrs(c)
	if err := cmp.Or(err, nodes.TLSErr); err != nil {
		return err
	}
	wanted := ""
	if c.IsSet("cluster") {
		wanted = c.String("cluster")
	}
	found, err := nodes.AskAllAt(c.Context, wanted, addrs)
	if err != nil {
		return err
	}
	return showStatus(c, health.AssessNodes("", found, time.Now()))
}

// showStatus prints a report. The error that it returns sets the exit code.
func showStatus(c *cli.Context, r health.Report) error {
	err := printDoc(c, r, func(w io.Writer) error { return printStatus(w, r) })
	answered := func(w health.WorkerReport) bool { return w.Says != nil }
	switch {
	case r.Source == health.SourceNodes && !slices.ContainsFunc(r.Workers, answered):
		return errors.Join(err, &codedError{exitUnreachable, errReported})
	case r.Summary.Degraded:
		return errors.Join(err, &codedError{exitDegraded, errReported})
	}
	return err
}
