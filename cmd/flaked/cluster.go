package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
	"github.com/flaked/flaked/worker"
)

func clusterCommand() *cli.Command {
	return &cli.Command{
		Name:  "cluster",
		Usage: "create and show a cluster, freeze and thaw registration",
		Subcommands: []*cli.Command{clusterInitCommand(), clusterShowCommand(), clusterFreezeCommand(),
			clusterThawCommand()},
	}
}

func clusterInitCommand() *cli.Command {
	return &cli.Command{
		Name:  "init",
		Usage: "create the cluster's record in ZooKeeper",
		Description: `Creates a cluster. Its layout and its other settings can never be changed. If the
cluster exists, nothing is changed, and a setting that differs from the flags is an
error. ` + "`flaked serve --bootstrap`" + ` does the same at a node's start.

Examples:
  flaked cluster init --zk zk1:2181,zk2:2181,zk3:2181
  flaked cluster init --zk zk1:2181/prod --cluster eu --layout twitter --datacenter 3`,
		Flags:  append(clusterFlags(), zkFlags("")...),
		Action: clusterInit,
	}
}

func clusterShowCommand() *cli.Command {
	return &cli.Command{
		Name:  "show",
		Usage: "print the cluster's record",
		Description: `Prints the settings that all nodes of the cluster share. ` + "`flaked status`" + ` prints
the nodes.

Examples:
  flaked cluster show --zk zk1:2181
  flaked cluster show -o json`,
		Flags:  append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
		Action: clusterShow,
	}
}

func clusterInit(c *cli.Context) error {
	settings, err := readClusterSettings(c)
	if err != nil {
		return err
	}
	want, err := settings.Record(uuid.NewString(), limits.DefaultHeartbeat)
	if err != nil {
		return usageError("%w", err)
	}
	// The settings stay for ever, so a node with the longest heartbeat that they allow must be able to join.
	joins := node.Config{
		Heartbeat: min(limits.DefaultHeartbeat, limits.MaxHeartbeat(millis(want.ConfirmMs))),
		Reserve:   limits.DefaultReserve,
	}
	if err := joins.Fits(want); err != nil {
		return usageError("%w", err)
	}
	return withStore(c, func(st store.Store) error {
		found, err := coordinator.CreateCluster(c.Context, st, want, time.Now().UnixMilli())
		if err != nil {
			return err
		}
		name := c.String("cluster")
		if found.UUID == want.UUID {
			fmt.Fprintf(c.App.Writer, "created cluster %s: %s\n", name, found.UUID)
			warnShortConfirm(c.App.ErrWriter, millis(found.ConfirmMs))
		} else if err := settings.Agree(found); err != nil {
			return fmt.Errorf("cluster %s (%s) exists: %w", name, found.UUID, err)
		} else {
			fmt.Fprintf(c.App.Writer, "cluster %s (%s) exists already. Nothing was changed.\n", name, found.UUID)
		}
		return clusterRows(health.DescribeCluster(name, found, time.Now())).print(c.App.Writer)
	})
}

// warnShortConfirm prints what a short confirming time requires of the nodes, and nothing if it is not short.
func warnShortConfirm(w io.Writer, confirm time.Duration) {
	most := limits.MaxHeartbeat(confirm)
	if most < limits.DefaultHeartbeat {
		fmt.Fprintf(w, "nodes of this cluster need --heartbeat %s or less: the confirming time is %s\n", most, confirm)
	}
	if confirm-min(most, limits.DefaultHeartbeat) < limits.Comfortable {
		fmt.Fprintf(w, "for development only: with a confirming time of %s, a node that pauses for half a second "+
			"may notice too late that ZooKeeper lost data\n", confirm)
	}
}

func clusterShow(c *cli.Context) error {
	return withStore(c, func(st store.Store) error {
		found, err := coordinator.ReadCluster(c.Context, st)
		if err != nil {
			return err
		}
		report := health.DescribeCluster(c.String("cluster"), found, time.Now())
		return printDoc(c, report, clusterRows(report).print)
	})
}

func clusterRows(r health.ClusterReport) textTable {
	rows := textTable{
		{"cluster", r.Name},
		{"uuid", words.Clean(r.UUID)},
		{"layout", words.Clean(r.Layout)},
		{"workers", strconv.Itoa(r.Slots)},
		{"datacenter", strconv.FormatInt(r.Datacenter, 10)},
		{"lease", millis(r.LeaseMs).String()},
		{"confirming time", millis(r.ConfirmMs).String()},
		{"on a rollback", words.Clean(r.OnRollback)},
	}
	if word := worker.StartRandom.String(); r.SequenceStart != word {
		rows.add("first sequence", words.Clean(r.SequenceStart))
	}
	if word := worker.SegmentZero.String(); r.SegmentStart != word {
		rows.add("first segment", words.Clean(r.SegmentStart))
	}
	if r.BorrowMs > 0 {
		rows.add("borrows", "up to "+millis(r.BorrowMs).String())
	}
	if end := r.IDsEndMs; end != nil {
		rows.add("IDs end", time.UnixMilli(*end).UTC().Format(time.DateOnly))
	}
	if p, frozen := r.FrozenProblem(); frozen {
		rows.add("frozen", p.String())
	}
	return rows
}
