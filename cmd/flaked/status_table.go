package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// printStatus prints the verdict, the problems, the table of workers, and the lines below it.
func printStatus(w io.Writer, r health.Report) error {
	var out strings.Builder
	fmt.Fprintln(&out, r.Verdict())
	for _, p := range r.Summary.Problems {
		fmt.Fprintf(&out, "\n%s: %s.\n  %s\n  %s\n", p.Severity, words.Clean(p.Text), p.Clients, words.Clean(p.Advice))
	}
	table := textTable{statusHeader}
	for _, worker := range r.Workers {
		if worker.State != health.Free && !table.mergeIntoLast(worker) {
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

func statusCells(w health.WorkerReport) []string {
	worker := ""
	if w.HasNumber() {
		worker = strconv.Itoa(w.Worker)
	}
	cells := []string{
		worker, w.Name, w.Address, string(w.State), w.SaysText(),
		durationCell(w.ReportAgeMs), w.OffsetText(), durationCell(w.LeaseLeft()),
		strconv.FormatInt(w.Term, 10), w.Version,
	}
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	return cells
}

// mergeIntoLast adds the worker's number to the last row if that is of workers that are lost like this one: after a
// loss of data there may be a thousand. A row of several workers has FIRST-LAST as their number. mergeIntoLast returns
// false if the worker needs a row of its own.
func (t textTable) mergeIntoLast(w health.WorkerReport) bool {
	last, cells := t[len(t)-1], statusCells(w)
	first, before, several := strings.Cut(last[0], "-")
	if !several {
		before = first
	}
	if w.State != health.RecordMissing || before != strconv.Itoa(w.Worker-1) || !slices.Equal(last[1:], cells[1:]) {
		return false
	}
	last[0] = first + "-" + cells[0]
	return true
}

// durationCell formats a number of ms, "" for nil.
func durationCell(ms *int64) string {
	if ms == nil {
		return ""
	}
	return words.Duration(*ms)
}

func statusFooter(r health.Report) (lines []string) {
	asked := askedLine(r.Workers)
	switch s, c := r.Summary, r.Cluster; {
	case r.ZooKeeperError != "":
		lines = append(lines, "ZooKeeper was not read, so the values come from the node itself: "+r.ZooKeeperError)
	case r.Source == health.SourceZooKeeper:
		lines = append(lines, fmt.Sprintf("cluster %s (%s), layout %s", c.Name, words.Clean(c.UUID),
			words.Clean(c.Layout)), s.HeldLine())
		if s.Used == 0 {
			asked = "start a node with `flaked serve`"
		}
	}
	if asked != "" {
		lines = append(lines, asked)
	}
	return lines
}

// askedLine returns a line on the nodes that were asked, "" for none. Each kind of failure has the reason of one node.
func askedLine(workers []health.WorkerReport) string {
	n, why := make(map[health.Outcome]int), make(map[health.Outcome]string)
	for _, w := range workers {
		if w.Outcome != "" {
			n[w.Outcome]++
			why[w.Outcome] = cmp.Or(why[w.Outcome], w.Why)
		}
	}
	var parts []string
	for _, row := range []struct {
		outcome health.Outcome
		text    string
	}{
		{health.Answered, "answered"}, {health.NoAnswer, "did not answer"}, {health.TimedOut, "did not answer in time"},
		{health.AccessDenied, "denied access"}, {health.TLSFailed, "failed in TLS"},
		{health.AnotherNode, "replaced by another node"}, {health.NoAddress, "without an address for this machine"},
	} {
		if n[row.outcome] == 0 {
			continue
		}
		part := fmt.Sprintf("%d %s", n[row.outcome], row.text)
		if because := why[row.outcome]; because != "" && because != string(row.outcome) {
			part += " (" + because + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 || n[health.Answered] > 0 && len(parts) == 1 {
		return "" // the verdict says it
	}
	return "nodes asked: " + strings.Join(parts, ", ")
}
