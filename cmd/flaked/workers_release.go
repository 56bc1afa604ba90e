package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

func workersRelease() *cli.Command {
	return &cli.Command{
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
		Action: workersReleaseAction,
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

func workersReleaseAction(c *cli.Context) error {
	worker, err := workerArgument(c)
	if err != nil {
		return err
	}
	return withStore(c, func(ctx context.Context, st store.Store) error {
		r := releaser{c: c, hand: operator(st)}
		done, err := r.release(ctx, worker)
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

type releaser struct {
	c    *cli.Context
	hand coordinator.Operator
}

func (r releaser) release(ctx context.Context, worker int) (releaseReport, error) {
	found, err := r.hand.Examine(ctx, worker)
	if err != nil {
		return releaseReport{}, err
	}
	if slots := found.Cluster.Slots; worker >= slots {
		return releaseReport{}, exitWith(exitFailure, "worker %d not found: the cluster's layout has workers 0 to %d", worker, slots-1)
	}
	s, now := found.Slot, time.UnixMilli(r.hand.Now())
	report := releaseReport{Worker: worker, FreeMs: s.LeaseUntil}
	switch {
	case s.Term < 0:
		return r.replace(ctx, found)
	case s.Term == 0 && s.Lost && found.Availability != coordinator.Free:
		return report, exitWith(exitFailure, "ZooKeeper lost the record of worker %d, so the worker is kept for its holder until %s. Wait, or see flaked cluster thaw --help", worker, view.Instant(s.LeaseUntil, now))
	case s.Term == 0:
		report.Text = fmt.Sprintf("worker %d is free, and no node has held it. Nothing was changed.", worker)
		return report, nil
	case s.Released:
		report.Text = fmt.Sprintf("worker %d is already free. Nothing was changed.", worker)
		if found.Availability == coordinator.Releasing {
			report.Text = fmt.Sprintf("worker %d was already released, and is free from %s on. Nothing was changed.", worker, view.Instant(s.LeaseUntil, now))
		}
		return report, nil
	}
	return r.takeAway(ctx, found, holderName(s), now)
}

// holderName returns the name that a confirmation must give a node.
func holderName(s coordinator.Slot) string {
	if name := view.Clean(s.Name); name != "" {
		return name
	}
	return view.Clean(s.Node)
}

// replace replaces a record that cannot be read.
func (r releaser) replace(ctx context.Context, found coordinator.Holding) (releaseReport, error) {
	err := confirm(r.c, fmt.Sprintf("the record of worker %d is gone or cannot be read. A running holder restores its own record. Otherwise the worker will be reserved for the longest lease, %s, and then be free",
		found.Worker, millis(found.Cluster.LeaseMs)), fmt.Sprintf("replace the record of worker %d", found.Worker))
	if err != nil {
		return releaseReport{}, err
	}
	e, err := r.hand.ForceRelease(ctx, found)
	if err != nil {
		return releaseReport{}, err
	}
	return releaseReport{found.Worker, true, e.Slot.LeaseUntil, fmt.Sprintf("worker %d is kept for its holder until %s, and then free", found.Worker, view.Instant(e.Slot.LeaseUntil, time.UnixMilli(r.hand.Now())))}, nil
}

func (r releaser) takeAway(ctx context.Context, found coordinator.Holding, name string, now time.Time) (releaseReport, error) {
	if err := r.ask(found, name, now); err != nil {
		return releaseReport{}, err
	}
	e, err := r.hand.ForceRelease(ctx, found)
	if err != nil {
		return releaseReport{}, err
	}
	report := releaseReport{Worker: found.Worker, Changed: true, FreeMs: e.Slot.LeaseUntil}
	now = time.UnixMilli(r.hand.Now())
	if found.Availability == coordinator.Free {
		report.Text = fmt.Sprintf("worker %d is free: its lease expired at %s. If %s comes back, it acquires another worker.", found.Worker, view.Instant(e.Slot.LeaseUntil, now), name)
	} else {
		report.Text = fmt.Sprintf("worker %d was released from %s, and is free when the lease expires, at %s. %[2]s acquires another worker as soon as it reaches ZooKeeper.",
			found.Worker, name, view.Instant(e.Slot.LeaseUntil, now))
	}
	return report, nil
}

// ask asks for confirmation, unless the worker is free.
func (r releaser) ask(found coordinator.Holding, name string, now time.Time) error {
	s, is := found.Slot, map[coordinator.Availability]string{
		coordinator.Live:         "is connected to ZooKeeper and runs",
		coordinator.Stopped:      "has stopped and may be started again",
		coordinator.Disconnected: "is not connected to ZooKeeper but may be running",
	}[found.Availability]
	if found.Availability == coordinator.Free {
		return nil
	}
	return confirm(r.c, fmt.Sprintf("%s, which holds worker %d, %s. It will have to acquire another worker, and this one will be free when the lease expires, at %s. No ID will be issued twice",
		name, found.Worker, is, view.Instant(s.LeaseUntil, now)), fmt.Sprintf("release worker %d of %s", found.Worker, name))
}
