package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/words"
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
			Flags:  append([]cli.Flag{confirmFlag()}, zkFlags("")...),
			Action: workersRelease,
		}},
	}
}

func workersRelease(c *cli.Context) error {
	if c.NArg() != 1 {
		return usageError("expected one worker, as in `%s 7`, got %d arguments", c.Command.HelpName, c.NArg())
	}
	n, err := strconv.ParseUint(c.Args().First(), 10, 16)
	if err != nil {
		return usageError("%q is not a worker. Give a number, such as 7", c.Args().First())
	}
	return withStore(c, func(st store.Store) error {
		done, err := release(c, workersOperator(st), int(n))
		if err != nil {
			return err
		}
		return printText(c, "%s\n", done)
	})
}

// release takes a worker from its holder, also after the lease has expired, and returns what was done. It changes
// nothing if no node has held the worker, or if it was released before. It replaces a record that cannot be read.
func release(c *cli.Context, o coordinator.Operator, worker int) (done string, err error) {
	found, err := o.Examine(c.Context, worker)
	if err != nil {
		return "", err
	}
	s := found.Slot
	free, until := found.Availability == coordinator.Free, words.Moment(s.LeaseUntil, time.UnixMilli(o.Now()))
	switch {
	case worker >= found.Cluster.Slots:
		return "", failure("worker %d not found: the cluster has workers 0 to %d", worker,
			found.Cluster.Slots-1)
	case s.Term == 0 && s.StandsIn && !free:
		return "", failure("ZooKeeper lost the record of worker %d, so the worker is kept for its "+
			"holder until %s. Wait, or see flaked cluster thaw --help", worker, until)
	case (s.Term == 0 || s.Released) && found.Cluster.Frozen(o.Now()):
		return "", &coordinator.StillFrozenError{Worker: worker, Until: found.Cluster.FrozenUntil,
			By: found.Cluster.FrozenBy}
	case s.Term == 0 || s.Released:
		return nothingToRelease(found, until), nil
	}
	if risk, phrase := releaseRisk(found, until); risk != "" {
		if err := confirm(c, risk, phrase); err != nil {
			return "", err
		}
	}
	e, err := o.ForceRelease(c.Context, found)
	if err != nil {
		return "", err
	}
	return releasedText(found, words.Moment(e.Slot.LeaseUntil, time.UnixMilli(o.Now()))), nil
}

// holderName returns the display name of a worker's holder. A node without one is called by its identity.
func holderName(s coordinator.Slot) string { return cmp.Or(words.Clean(s.Name), words.Clean(s.Node)) }

// releaseRisk returns what a release does to the holder, and the phrase that confirms it. Both are "" if the lease has
// expired, at until.
func releaseRisk(found coordinator.Examined, until string) (risk, phrase string) {
	name := holderName(found.Slot)
	switch {
	case found.Slot.Term < 0:
		return fmt.Sprintf("the record of worker %d is gone or cannot be read. A running holder restores its own "+
			"record. Otherwise the worker will be reserved until no lease can run, for at least %s, and then be free",
			found.Worker, millis(found.Cluster.LeaseMs)), fmt.Sprintf("replace the record of worker %d", found.Worker)
	case found.Availability != coordinator.Free:
		return fmt.Sprintf("%s, which holds worker %d, %s. It will have to acquire another worker, and this one will "+
			"be free when the lease expires, at %s. No ID will be issued twice", name, found.Worker,
			holderStates[found.Availability], until), fmt.Sprintf("release worker %d of %s", found.Worker, name)
	}
	return "", ""
}

// releasedText says what a release has done. The worker is free from until on.
func releasedText(found coordinator.Examined, until string) string {
	name := holderName(found.Slot)
	switch {
	case found.Slot.Term < 0:
		return fmt.Sprintf("worker %d is kept for its holder until %s, and then free", found.Worker, until)
	case found.Availability == coordinator.Free:
		return fmt.Sprintf("worker %d is free: its lease expired at %s. If %s comes back, it acquires another worker.",
			found.Worker, until, name)
	}
	return fmt.Sprintf("worker %d was released from %s, and is free when the lease expires, at %s. "+
		"%[2]s acquires another worker as soon as it reaches ZooKeeper.", found.Worker, name, until)
}

// nothingToRelease says why a worker is not released.
func nothingToRelease(found coordinator.Examined, until string) string {
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
