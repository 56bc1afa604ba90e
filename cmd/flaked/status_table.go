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
func (p statusReport) print(w io.Writer) error {
	shown := slices.DeleteFunc(slices.Clone(p.Workers), func(w view.WorkerReport) bool { return w.State == view.Free })
	if err := printWorkers(w, shown); err != nil {
		return err
	}
	footer := append(statusFooter(p.Report), p.lines()...)
	if len(shown) > 0 {
		footer = append([]string{""}, footer...)
	}
	_, err := io.WriteString(w, strings.Join(footer, "\n")+"\n")
	return err
}

// printWorkers prints the table, unless there are no workers.
func printWorkers(w io.Writer, workers []view.WorkerReport) error {
	if len(workers) == 0 {
		return nil
	}
	var t textTable
	t.add(statusHeader...)
	for _, worker := range workers {
		t.add(statusCells(worker)...)
	}
	return t.print(w)
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

func statusFooter(r view.Report) (lines []string) {
	s, c := r.Summary, r.Cluster
	if r.Source == view.SourceNodes {
		if r.ZooKeeperError != "" {
			lines = append(lines, "ZooKeeper was not read, so the values come from the node itself: "+r.ZooKeeperError)
		}
		if line := askedLine(r.Workers); line != "" {
			lines = append(lines, line)
		}
		return lines
	}
	lines = []string{
		fmt.Sprintf("cluster %s (%s), layout %s", c.Name, view.Clean(c.UUID), view.Clean(c.Layout)),
		s.HeldLine(),
	}
	if s.ShortestLeaseMs != nil {
		lines = append(lines, "if ZooKeeper fails now, every serving node lasts at least "+shortest(r))
	}
	if line := r.ClocksLine(); line != "" {
		lines = append(lines, line)
	}
	if line := askedLine(r.Workers); s.Asked && line != "" {
		lines = append(lines, line)
	}
	if s.Used == 0 {
		lines = append(lines, "no node has registered yet: start one with `flaked serve`")
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
