package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

func workersCommand() *cli.Command {
	return &cli.Command{
		Name:  "workers",
		Usage: "release a worker that a node holds",
		Subcommands: []*cli.Command{{
			Name:      "release",
			Usage:     "release a worker that a node holds",
			ArgsUsage: "WORKER",
			Description: `Releases a worker that a node holds. The node acquires another worker as soon as it
reaches ZooKeeper again, and never this one. That is always safe, whatever the node
does: the next holder begins where this lease ends. So the worker is free from then
on, and not before. A worker whose lease has expired is released at once. Otherwise
the command must be confirmed. Without --confirm, it prints the words that it needs. It
is refused while registration is frozen.

Examples:
  flaked workers release --zk zk1:2181 7
  flaked workers release --zk zk1:2181 7 --confirm 'release worker 7 of ids-3'`,
			Flags:  append([]cli.Flag{confirmFlag(), outputFlag()}, zkFlags("")...),
			Action: workersRelease,
		}},
	}
}

// releaseReport is the JSON of `flaked workers release`.
type releaseReport struct {
	Worker int `json:"worker"`
	// Changed is true if this call released the worker.
	Changed bool `json:"changed"`
	// FreeMs is the time from which anybody may take the worker, in Unix milliseconds.
	FreeMs int64  `json:"free_ms"`
	Text   string `json:"text"`
}

func workersRelease(c *cli.Context) error {
	if c.NArg() != 1 {
		return usageError("expected one worker, as in `%s 7`, got %d arguments", c.Command.HelpName, c.NArg())
	}
	n, err := strconv.ParseUint(c.Args().First(), 10, 16)
	if err != nil {
		return usageError("%q is not a worker. Give a number, such as 7", c.Args().First())
	}
	return withStore(c, func(ctx context.Context, st store.Store) error {
		done, err := release(ctx, c, operator(st), int(n))
		if err != nil {
			return err
		}
		return show(c, done, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, done.Text)
			return err
		})
	})
}

func operator(st store.Store) coordinator.Operator {
	return coordinator.Operator{Store: st, Now: func() int64 { return time.Now().UnixMilli() }, By: whoami()}
}

// release takes a worker from its holder, unless the worker is free. It replaces a record that cannot be read.
func release(ctx context.Context, c *cli.Context, o coordinator.Operator, worker int) (releaseReport, error) {
	report := releaseReport{Worker: worker}
	found, err := o.Examine(ctx, worker)
	if err != nil {
		return report, err
	}
	s, now := found.Slot, time.UnixMilli(o.Now())
	report.FreeMs = s.LeaseUntil
	free, until := found.Availability == coordinator.Free, view.Instant(s.LeaseUntil, now)
	// The holder's display name, which the confirmation repeats. A node without one is called by its identity.
	name := cmp.Or(view.Clean(s.Name), view.Clean(s.Node))
	risk, words := "", ""
	switch {
	case worker >= found.Cluster.Slots:
		return report, exitWith(exitFailure, "worker %d not found: the cluster's layout has workers 0 to %d",
			worker, found.Cluster.Slots-1)
	case s.Term == 0 && s.Lost && !free:
		return report, exitWith(exitFailure, "ZooKeeper lost the record of worker %d, so the worker is kept for its "+
			"holder until %s. Wait, or see flaked cluster thaw --help", worker, until)
	case s.Term == 0 || s.Released:
		report.Text = nothingToRelease(found, until)
		return report, nil
	case s.Term < 0:
		risk = fmt.Sprintf("the record of worker %d is gone or cannot be read. A running holder restores its own "+
			"record. Otherwise the worker will be reserved for the longest lease, %s, and then be free", worker,
			millis(found.Cluster.LeaseMs))
		words = fmt.Sprintf("replace the record of worker %d", worker)
	case !free:
		risk = fmt.Sprintf("%s, which holds worker %d, %s. It will have to acquire another worker, and this one will "+
			"be free when the lease expires, at %s. No ID will be issued "+
			"twice", name, worker, holderStates[found.Availability],
			until)
		words = fmt.Sprintf("release worker %d of %s", worker, name)
	}
	if risk != "" {
		if err := confirm(c, risk, words); err != nil {
			return report, err
		}
	}
	e, err := o.ForceRelease(ctx, found)
	if err != nil {
		return report, err
	}
	report.Changed, report.FreeMs = true, e.Slot.LeaseUntil
	switch until := view.Instant(e.Slot.LeaseUntil, time.UnixMilli(o.Now())); {
	case s.Term < 0:
		report.Text = fmt.Sprintf("worker %d is kept for its holder until %s, and then free", worker, until)
	case free:
		report.Text = fmt.Sprintf("worker %d is free: its lease expired at %s. If %s comes back, it acquires another "+
			"worker.",
			worker, until, name)
	default:
		report.Text = fmt.Sprintf("worker %d was released from %s, and is free when the lease expires, at %s. "+
			"%[2]s acquires another worker as soon as it reaches ZooKeeper.", worker, name, until)
	}
	return report, nil
}

// nothingToRelease says why a worker is not released.
func nothingToRelease(found coordinator.Holding, until string) string {
	switch {
	case found.Slot.Term == 0:
		return fmt.Sprintf("worker %d is free, and no node has held it. Nothing was changed.", found.Worker)
	case found.Availability == coordinator.Releasing:
		return fmt.Sprintf("worker %d was already released, and is free from %s on. Nothing was changed.",
			found.Worker, until)
	}
	return fmt.Sprintf("worker %d is already free. Nothing was changed.", found.Worker)
}

var holderStates = map[coordinator.Availability]string{
	coordinator.Live:         "is connected to ZooKeeper and runs",
	coordinator.Stopped:      "has stopped and may be started again",
	coordinator.Disconnected: "is not connected to ZooKeeper but may be running",
}
