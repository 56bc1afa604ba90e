package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/flaked/flaked/internal/ops/view"
)

// print prints the table and the lines below it. Problems follow on standard error.
func (r statusReport) print(w io.Writer) error {
	table := textTable{statusHeader}
	for _, worker := range r.Workers {
		if worker.State != view.Free {
			table.add(statusCells(worker)...)
		}
	}
	footer := strings.Join(r.footer(), "\n") + "\n"
	if len(table) > 1 {
		if err := table.print(w); err != nil {
			return err
		}
		footer = "\n" + footer
	}
	_, err := io.WriteString(w, footer)
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

// footer returns the lines below the table.
func (r statusReport) footer() (lines []string) {
	add := func(line string, is bool) {
		if is && line != "" {
			lines = append(lines, line)
		}
	}
	s, c := r.Summary, r.Cluster
	if r.Source == view.SourceNodes {
		add("ZooKeeper was not read, so the values come from the node itself: "+r.ZooKeeperError,
			r.ZooKeeperError != "")
		add(askedLine(r.Workers), true)
		return lines
	}
	add(fmt.Sprintf("cluster %s (%s), layout %s", c.Name, view.Clean(c.UUID), view.Clean(c.Layout)), true)
	add(s.HeldLine(), true)
	if s.ShortestLeaseMs != nil {
		add("if ZooKeeper fails now, every serving node lasts at least "+shortest(r.Report), true)
	}
	add(r.ClocksLine(), true)
	add(askedLine(r.Workers), true)
	add("no node has registered yet: start one with `flaked serve`", s.Used == 0)
	add("named sequences: "+r.SequencesError+". See `flaked seq list`", r.SequencesError != "")
	if r.Sequences != nil {
		line := r.Sequences.Line()
		if len(r.Sequences.Problems()) > 0 {
			line += ". `flaked seq list` shows them"
		}
		add(line, true)
	}
	return lines
}

// shortest returns how long all live nodes may go on, and whose lease ends first.
func shortest(r view.Report) string {
	first := slices.IndexFunc(r.Workers, func(w view.WorkerReport) bool {
		return w.State == view.Live && w.LeaseLeft() == r.Summary.ShortestLeaseMs
	})
	return view.Brief(max(0, *r.Summary.ShortestLeaseMs)) + " (first: " + view.Whom(r.Workers[first:first+1]) + ")"
}
