package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/coordinator"
)

func workersHistory() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "print who has held a worker",
		UsageText: "flaked workers history --zk HOST:PORT WORKER [flags]",
		ArgsUsage: "WORKER",
		Description: `Prints the present holder of a worker and the four before it, the oldest first. Use it
to find out which node made an ID (` + "`flaked decode`" + ` prints the worker and the time). A
holder keeps its worker over restarts, and each start begins a new term. ENDED is
  released   the holder released the worker
  taken      an operator released it with ` + "`flaked workers release`" + `
  stopped    the holder stopped cleanly, and did not come back before its lease expired
  vanished   the holder disconnected without stopping, and its lease expired
  gave way   the holder yielded to an earlier one that ZooKeeper had lost

Examples:
  flaked workers history --zk zk1:2181 7
  flaked workers history 7 -o json`,
		Flags: append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
		Action: func(c *cli.Context) error {
			return withWorker(c, func(_ context.Context, _ clusterview.Report, e coordinator.Entry) error {
				holders := append(former(e.Slot), present(e.Slot)...)
				if asJSON(c) {
					return printJSON(c.App.Writer, struct {
						Worker  int            `json:"worker"`
						Holders []holderReport `json:"holders"`
					}{e.Worker, holders})
				}
				if len(holders) == 0 {
					_, err := fmt.Fprintf(c.App.Writer, "no node has held worker %d\n", e.Worker)
					return err
				}
				var t textTable
				t.add("NAME", "NODE", "HOST", "FROM TERM", "SINCE", "ENDED")
				for _, h := range holders {
					t.add(h.cells()...)
				}
				return t.print(c.App.Writer, false)
			})
		},
	}
}

// holderReport is one holder in the JSON of `workers history`.
type holderReport struct {
	Node string `json:"node"`
	Name string `json:"name"`
	Host string `json:"host"`
	// FromTerm is the first term of this holder, and GrantedMs is when it was granted.
	// Each is null if unknown.
	FromTerm  *int64 `json:"from_term"`
	GrantedMs *int64 `json:"granted_ms"`
	// Ended says how the holder lost the worker, null if it has not. By names the operator who
	// took the worker, if one did.
	Ended *string `json:"ended"`
	By    string  `json:"by"`
}

func known(v int64) *int64 {
	if v == 0 {
		return nil
	}
	return &v
}

func former(s coordinator.Slot) []holderReport {
	out := []holderReport{}
	for _, f := range s.History.List() {
		if f.Host == "" {
			f.Host = f.Name
		}
		out = append(out, holderReport{f.Node, f.Name, f.Host, known(f.Term), known(f.Granted), &f.Ended, f.By})
	}
	return out
}

// present returns the holder in the record, even if it has given the worker back.
func present(s coordinator.Slot) []holderReport {
	if s.Term <= 0 {
		return nil
	}
	h := holderReport{Node: s.Node, Name: s.Name, Host: s.Host, FromTerm: known(s.FromTerm), GrantedMs: known(s.Granted), By: s.ReleasedBy}
	switch {
	case s.ReleasedBy != "":
		h.Ended = new(coordinator.EndedTaken)
	case s.Released:
		h.Ended = new(coordinator.EndedReleased)
	}
	return []holderReport{h}
}

func (h holderReport) cells() []string {
	cells := []string{h.Name, h.Node, h.Host, "", "", "holds it"}
	if h.FromTerm != nil {
		cells[3] = strconv.FormatInt(*h.FromTerm, 10)
	}
	if h.GrantedMs != nil {
		cells[4] = time.UnixMilli(*h.GrantedMs).UTC().Format(time.RFC3339)
	}
	if h.Ended != nil {
		cells[5] = *h.Ended
		if h.By != "" {
			cells[5] += ", by " + h.By
		}
	}
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	return cells
}
