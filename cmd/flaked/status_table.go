package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/flaked/flaked/internal/ops/view"
)

// printStatus prints the verdict, the problems, the table of workers, and the lines below it.
func printStatus(w io.Writer, r view.Report) error {
	var out strings.Builder
	fmt.Fprintln(&out, r.Verdict())
	for _, p := range r.Summary.Problems {
		fmt.Fprintf(&out, "\n%s: %s.\n  %s\n  %s\n", p.Severity, view.Clean(p.Text), p.Clients, view.Clean(p.Advice))
	}
	table := textTable{statusHeader}
	for _, worker := range r.Workers {
		if worker.State != view.Free {
			table.add(statusCells(worker)...)
		}
	}
	if len(table) > 1 {
		out.WriteString("\n")
		_ = table.print(&out)
	}
	if footer := statusFooter(r); len(footer) > 0 {
		out.WriteString("\n" + strings.Join(footer, "\n") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

var statusHeader = []string{"WORKER", "NAME", "ADDRESS", "STATE", "SAYS", "REPORT", "CLOCK", "LEASE", "TERM", "VERSION"}

func statusCells(w view.WorkerReport) []string {
	worker := ""
	if w.Worker >= 0 {
		worker = strconv.Itoa(w.Worker)
	}
	cells := []string{
		worker, w.Name, w.Address, w.State, w.SaysText(),
		span(w.ReportAgeMs), w.OffsetText(), span(w.LeaseLeft()),
		strconv.FormatInt(w.Term, 10), w.Version,
	}
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	return cells
}

// span formats a duration cell, "" for nil.
func span(ms *int64) string {
	if ms == nil {
		return ""
	}
	return view.Brief(*ms)
}

// statusFooter returns the lines below the table.
func statusFooter(r view.Report) (lines []string) {
	asked := askedLine(r.Workers)
	switch s, c := r.Summary, r.Cluster; {
	case r.ZooKeeperError != "":
		lines = append(lines, "ZooKeeper was not read, so the values come from the node itself: "+r.ZooKeeperError)
	case r.Source == view.SourceZooKeeper:
		lines = append(lines, fmt.Sprintf("cluster %s (%s), layout %s", c.Name, view.Clean(c.UUID),
			view.Clean(c.Layout)), s.HeldLine())
		if s.Used == 0 {
			asked = "start a node with `flaked serve`"
		}
	}
	if asked != "" {
		lines = append(lines, asked)
	}
	return lines
}
