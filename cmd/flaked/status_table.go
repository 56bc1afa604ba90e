package main

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// printStatus prints the table and what there is to say below it. What is
// wrong follows on standard error.
func printStatus(w io.Writer, r statusReport, wide, colour bool) error {
	t := textTable{right: map[int]bool{0: true}}
	t.add(statusHeader(wide)...)
	hidden := 0
	for _, worker := range r.Workers {
		if worker.State == stateFree && !wide {
			hidden++
			continue
		}
		t.add(statusCells(worker, wide)...)
		t.rows[len(t.rows)-1][stateColumn].colour = stateColour(worker.State)
	}
	if len(t.rows) > 1 {
		if err := t.print(w, colour); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	for _, line := range statusFooter(r, hidden) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

const stateColumn = 3

func statusHeader(wide bool) []string {
	cells := []string{"WORKER", "NAME", "ADDRESS", "STATE", "REPORT", "OFFSET", "LEASE", "TERM", "VERSION"}
	if wide {
		cells = append(cells, "PHASE", "SETTLED", "NODE", "HOST", "PID")
	}
	return cells
}

func statusCells(w workerReport, wide bool) []string {
	cells := []string{
		strconv.Itoa(w.Worker), w.Name, w.Address, w.State,
		span(w.ReportAgeMs), offsetCell(w.ClockOffsetMs), span(w.LeaseLeftMs),
		strconv.FormatInt(w.Term, 10), w.Version,
	}
	if wide {
		cells = append(cells, w.Phase, strconv.FormatBool(w.Settled), w.Node, w.Host, strconv.Itoa(w.PID))
	}
	for i, cell := range cells {
		cells[i] = orDash(clean(cell))
	}
	return cells
}

func stateColour(state string) string {
	switch state {
	case stateLive:
		return green
	case stateDetached, stateLost:
		return red
	case stateStopped, stateCooling:
		return yellow
	}
	return faint
}

// span is a duration cell.
func span(ms *int64) string {
	if ms == nil {
		return ""
	}
	return brief(millis(*ms))
}

// offsetCell is signed, in ms up to ten seconds.
func offsetCell(ms *float64) string {
	switch {
	case ms == nil:
		return ""
	case *ms == 0:
		return "0ms"
	case *ms >= 10_000:
		return "+" + brief(millis(int64(*ms)))
	case *ms <= -10_000:
		return brief(millis(int64(*ms)))
	}
	return fmt.Sprintf("%+gms", *ms)
}

func statusFooter(r statusReport, hidden int) []string {
	s, c := r.Summary, r.Cluster
	lines := []string{
		fmt.Sprintf("cluster %s (%s), layout %s", c.Name, clean(c.UUID), clean(c.Layout)),
		fmt.Sprintf("%d of %d workers held: %d live, %d detached, %d stopped; %d cooling, %d lost, %d free; %d ever used",
			s.Held, s.Slots, s.Live, s.Detached, s.Stopped, s.Cooling, s.Lost, s.Free, s.Used),
	}
	if c.Frozen {
		lines = append(lines, "registration frozen until "+instant(c.FrozenUntilMs, time.UnixMilli(s.NowMs)))
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
