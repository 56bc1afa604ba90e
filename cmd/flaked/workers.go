package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/zkstore"
)

func workersCommand() *cli.Command {
	return &cli.Command{
		Name:  "workers",
		Usage: "inspect and release workers",
		Subcommands: []*cli.Command{
			workersList(), workersShow(), workersHistory(), workersRelease(), workersForget(),
		},
	}
}

func workersList() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "print the workers that were ever held",
		UsageText: "flaked workers list --zk HOST:PORT [flags]",
		Description: `Prints the table of ` + "`flaked status`" + `, without asking nodes. It exits with 0, whatever
the states of the workers are.

Examples:
  flaked workers list --zk zk1:2181
  flaked workers list --state stopped,disconnected
  flaked workers list -o json | jq '.workers[].worker'`,
		Flags: append([]cli.Flag{
			wideOutputFlag(),
			&cli.StringFlag{Name: "state", Usage: "only workers in these `STATES`, separated by commas: live, disconnected, stopped, releasing, record-missing, free", DefaultText: "all", EnvVars: env("state")},
		}, zkFlags(localZK)...),
		Action: func(c *cli.Context) error {
			wanted, err := wantedStates(c.String("state"))
			if err != nil {
				return err
			}
			return withStore(c, func(ctx context.Context, store zkstore.Store) error {
				r, err := readStatus(ctx, store, c.String("cluster"), nil)
				if err != nil {
					return askNodes(err)
				}
				newSeenCache().save(seenIn(c.String("zk"), r, time.Now()))
				r.Workers = slices.DeleteFunc(r.Workers, func(w clusterview.WorkerReport) bool { return !wanted[w.State] })
				return show(c, workersReport{r.Cluster, r.Workers}, func(w io.Writer) error {
					return printWorkers(w, r.Workers, styleOf(c, w))
				})
			})
		},
	}
}

// workersReport is the JSON of `flaked workers list`.
type workersReport struct {
	Cluster clusterview.ClusterReport  `json:"cluster"`
	Workers []clusterview.WorkerReport `json:"workers"`
}

func wantedStates(list string) (map[string]bool, error) {
	states := clusterview.States()
	wanted := make(map[string]bool)
	if list == "" {
		list = strings.Join(states, ",")
	}
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if !slices.Contains(states, s) {
			return nil, usageError("--state: %q must be one of %s", s, strings.Join(states, ", "))
		}
		wanted[s] = true
	}
	return wanted, nil
}

func workersShow() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print all that is known about a worker",
		UsageText: "flaked workers show --zk HOST:PORT WORKER [flags]",
		ArgsUsage: "WORKER",
		Description: `Prints ZooKeeper's record of a worker, the answer of its node if that can be reached
(see flaked status), and the past holders. -o json prints the same in the form of
` + "`flaked status`" + `, with the past holders as history.

Examples:
  flaked workers show --zk zk1:2181 7
  flaked workers show 7 -o json`,
		Flags: append([]cli.Flag{outputFlag()}, slices.Concat(askFlags(), zkFlags(localZK))...),
		Action: func(c *cli.Context) error {
			nodes, err := nodeAsker(c)
			if err != nil {
				return err
			}
			return withWorker(c, func(ctx context.Context, r clusterview.Report, e coordinator.Entry) error {
				if nodes != nil {
					nodes.ask(ctx, r.Workers)
				}
				w := oneWorker(r, e)
				doc := struct {
					clusterview.WorkerReport
					History []holderReport `json:"history"`
				}{w, former(e.Slot)}
				return showFields(c, doc, workerRows(w, e.Slot, r.Summary.NowMs))
			})
		},
	}
}

// withWorker reads the worker that the first argument names, and calls f with it.
func withWorker(c *cli.Context, f func(ctx context.Context, r clusterview.Report, e coordinator.Entry) error) error {
	worker, err := workerArgument(c)
	if err != nil {
		return err
	}
	return withStore(c, func(ctx context.Context, store zkstore.Store) error {
		cl, err := coordinator.ReadCluster(ctx, store)
		if err != nil {
			return askNodes(err)
		}
		if err := inLayout(worker, cl); err != nil {
			return err
		}
		e, err := coordinator.ReadSlot(ctx, store, cl, worker)
		if err != nil {
			return err
		}
		return f(ctx, clusterview.Assess(c.String("cluster"), cl, []coordinator.Entry{e}, time.Now()), e)
	})
}

// askNodes adds a hint to an error if ZooKeeper cannot be reached: nodes can still be asked.
func askNodes(err error) error {
	if errors.Is(err, zkstore.ErrUnreachable) {
		return fmt.Errorf("%w. `flaked status` asks the nodes instead", err)
	}
	return err
}

func workerArgument(c *cli.Context) (int, error) {
	if c.NArg() != 1 {
		return 0, usageError("expected one worker, as in `%s 7`, got %d arguments", c.Command.HelpName, c.NArg())
	}
	n, err := strconv.ParseUint(c.Args().First(), 10, 16)
	if err != nil {
		return 0, usageError("%q is not a worker. Give a number, such as 7", c.Args().First())
	}
	return int(n), nil
}

func inLayout(worker int, cl coordinator.Cluster) error {
	if worker >= cl.Slots {
		return exitWith(exitFailure, "there is no worker %d: the cluster's layout has workers 0 to %d", worker, cl.Slots-1)
	}
	return nil
}

// oneWorker returns the report of a worker, even if nobody has held it.
func oneWorker(r clusterview.Report, e coordinator.Entry) clusterview.WorkerReport {
	if len(r.Workers) == 1 {
		return r.Workers[0]
	}
	return clusterview.WorkerReport{Worker: e.Worker, State: clusterview.Free}
}

func workerRows(w clusterview.WorkerReport, s coordinator.Slot, now int64) [][2]string {
	at := time.UnixMilli(now)
	rows := [][2]string{{"worker", strconv.Itoa(w.Worker)}, {"state", w.State + stateMeaning(w, s, at)}}
	if s.Term <= 0 {
		return rows
	}
	since := "unknown"
	if s.Granted != 0 {
		since = clusterview.Instant(s.Granted, at)
	}
	rows = append(rows, [][2]string{
		{"name", printable(w.Name)},
		{"node", printable(w.Node)},
		{"host", printable(w.Host)},
		{"process", strconv.Itoa(w.PID)},
		{"address", printable(w.Address)},
		{"admin", printable(w.Admin)},
		{"version", printable(w.Version)},
		{"held since", since},
		{"term", fmt.Sprintf("%d (its first: %s)", s.Term, orDash(decimal(s.FromTerm)))},
		{"phase", printable(w.Phase)},
		{"says", saysAtLength(w)},
		{"what to do", orDash(w.WhatToDo())},
		{"confirmed", strconv.FormatBool(w.Confirmed)},
		{"last report", orDash(span(w.ReportAgeMs))},
		{"clock", orDash(w.OffsetText())},
		{"lease bound", clusterview.Instant(s.LeaseUntil, at)},
	}...)
	if s.Stopped {
		rows = append(rows, [2]string{"stopped at", clusterview.Instant(s.StoppedAt, at)})
	}
	for i, h := range former(s) {
		title := ""
		if i == 0 {
			title = "held before by"
		}
		rows = append(rows, [2]string{title, fmt.Sprintf("%s (%s): %s", printable(h.Name), clusterview.Clean(h.Node), clusterview.Clean(*h.Ended))})
	}
	return rows
}

// saysAtLength returns the node's own state in a sentence.
func saysAtLength(w clusterview.WorkerReport) string {
	switch {
	case w.Says == nil && w.Why != "":
		return w.Asked + ": " + w.Why
	case w.Says == nil:
		return orDash(w.Asked)
	case !w.Says.Ready:
		return w.Says.Reason
	}
	return fmt.Sprintf("%s. %d IDs since its start. It may serve for %s without ZooKeeper, and for %s without its disk",
		w.SaysText(), w.Says.IDs, orDash(span(w.Says.LeaseLeftMs)), orDash(span(w.Says.ReservedLeftMs)))
}

func decimal(v int64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}

// stateMeaning explains the state of a worker. The text begins with a colon, and is "" for live.
func stateMeaning(w clusterview.WorkerReport, s coordinator.Slot, at time.Time) string {
	switch {
	case w.State == clusterview.Free:
		return ": any node may acquire it"
	case s.ReleasedBy != "":
		return fmt.Sprintf(": released by the operator %s, free when its lease expires, %s", clusterview.Clean(s.ReleasedBy), clusterview.Instant(s.LeaseUntil, at))
	case w.State == clusterview.Releasing:
		return ": released, free at " + clusterview.Instant(s.LeaseUntil, at)
	case w.State == clusterview.Stopped:
		return ": its holder stopped cleanly, and may come back until its lease expires"
	case w.State == clusterview.Disconnected:
		return ": its holder is not connected to ZooKeeper, and may serve until its lease expires"
	case w.State == clusterview.RecordMissing && s.Lost:
		return ": ZooKeeper lost its record, so the worker is kept for its holder until " + clusterview.Instant(s.LeaseUntil, at)
	case w.State == clusterview.RecordMissing:
		return ": its record is gone or cannot be read"
	}
	return ""
}
