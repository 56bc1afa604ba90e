package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
)

// style says how to print a page.
type style struct {
	wide, colour bool
	columns      int // of the terminal, 0 for no limit. A wide table has no limit
}

// styleOf returns the style for output of a command.
func styleOf(c *cli.Context, out io.Writer) style {
	_, columns, _ := size(out)
	return style{asWide(c), colours(out), columns}
}

// printLines prints lines, and continues each that is longer than columns in the next line.
func printLines(w io.Writer, lines []string, columns int) error {
	const indent = "  "
	var b strings.Builder
	for _, line := range lines {
		if columns <= minWrapped || len(line) <= columns {
			b.WriteString(line + "\n")
			continue
		}
		for i, part := range wrap(line, columns-len(indent)) {
			if i > 0 {
				part = indent + part
			}
			b.WriteString(part + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// print prints the table and the lines below it. Problems follow on standard error.
func (p recordsPage) print(w io.Writer, s style) error {
	shown := p.Workers
	if !s.wide {
		shown = slices.DeleteFunc(slices.Clone(shown), func(w clusterview.WorkerReport) bool { return w.State == clusterview.Free })
	}
	if err := printWorkers(w, shown, s); err != nil {
		return err
	}
	footer := append(statusFooter(p.Report, len(p.Workers)-len(shown)), p.lines()...)
	if len(shown) > 0 {
		footer = append([]string{""}, footer...)
	}
	return printLines(w, footer, s.columns)
}

// printWorkers prints the table, unless there are no workers.
func printWorkers(w io.Writer, workers []clusterview.WorkerReport, s style) error {
	if len(workers) == 0 {
		return nil
	}
	t := textTable{right: map[int]bool{0: true}}
	t.add(statusHeader(s.wide)...)
	for _, worker := range workers {
		row := t.add(statusCells(worker, s.wide)...)
		row[stateColumn].colour = stateColour(worker.State)
		if worker.ClockOff() {
			row[clockColumn].colour = red
		}
		if worker.Says != nil && !worker.Says.Ready {
			row[saysColumn].colour = red
		}
	}
	if !s.wide {
		t.fit(s.columns, "VERSION", "TERM", "REPORT", "ADDRESS")
	}
	return t.print(w, s.colour)
}

// Columns that are coloured.
const (
	stateColumn = 3
	saysColumn  = 4
	clockColumn = 6
)

func statusHeader(wide bool) []string {
	cells := []string{"WORKER", "NAME", "ADDRESS", "STATE", "SAYS", "REPORT", "CLOCK", "LEASE", "TERM", "VERSION"}
	if wide {
		cells = append(cells, "PHASE", "CONFIRMED", "NODE", "HOST", "PID", "ADMIN")
	}
	return cells
}

func statusCells(w clusterview.WorkerReport, wide bool) []string {
	cells := []string{
		strconv.Itoa(w.Worker), w.Name, w.Address, w.State, w.SaysText(),
		span(w.ReportAgeMs), w.OffsetText(), span(w.LeaseLeft()),
		strconv.FormatInt(w.Term, 10), w.Version,
	}
	if wide {
		cells = append(cells, w.Phase, strconv.FormatBool(w.Confirmed), w.Node, w.Host, strconv.Itoa(w.PID), w.Admin)
	}
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	return cells
}

func stateColour(state string) string {
	switch state {
	case clusterview.Live:
		return green
	case clusterview.Disconnected, clusterview.RecordMissing:
		return red
	case clusterview.Stopped, clusterview.Releasing:
		return yellow
	}
	return faint
}

// span formats a duration cell, "" for nil.
func span(ms *int64) string {
	if ms == nil {
		return ""
	}
	return clusterview.Brief(*ms)
}

func statusFooter(r clusterview.Report, hidden int) []string {
	s, c := r.Summary, r.Cluster
	lines := []string{
		fmt.Sprintf("cluster %s (%s), layout %s", c.Name, clusterview.Clean(c.UUID), clusterview.Clean(c.Layout)),
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
	if c.Frozen {
		lines = append(lines, "registration frozen until "+clusterview.Instant(c.FrozenUntilMs, time.UnixMilli(s.NowMs)))
	}
	switch {
	case hidden == 1:
		lines = append(lines, "1 free worker that was held before is not shown (-o wide shows it)")
	case hidden > 1:
		lines = append(lines, fmt.Sprintf("%d free workers that were held before are not shown (-o wide shows them)", hidden))
	}
	if s.Used == 0 {
		lines = append(lines, "no node has registered yet: start one with `flaked serve`")
	}
	return lines
}

// shortest returns how long all live nodes may go on, and whose lease ends first.
func shortest(r clusterview.Report) string {
	first := slices.IndexFunc(r.Workers, func(w clusterview.WorkerReport) bool {
		return w.State == clusterview.Live && w.LeaseLeft() == r.Summary.ShortestLeaseMs
	})
	return clusterview.Brief(max(0, *r.Summary.ShortestLeaseMs)) + " (first: " + clusterview.Whom(r.Workers[first:first+1]) + ")"
}
