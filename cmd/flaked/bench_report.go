package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/load"
)

// benchReport is the result of `flaked bench`, for people.
type benchReport struct{ *load.Report }

// print writes the report as a table, followed by examples of wrong IDs.
func (r benchReport) print(w io.Writer) error {
	loop := "closed loop"
	if r.Rate > 0 {
		loop = fmt.Sprintf("%s requests a second", grouped(int64(r.Rate)))
	}
	conns := "1 connection"
	if r.Conns > 1 {
		conns = grouped(int64(r.Conns)) + " connections"
	}
	fmt.Fprintf(w, "%s of %s: %s, %s, pipeline %d, %s\n\n", r.Command, r.Addr, loop, conns, r.Pipeline, r.Protocol)
	var t textTable
	t.add("MEASURED", r.measured())
	t.add("REQUESTS", fmt.Sprintf("%s (%s a second)", grouped(r.Requests), grouped(int64(r.RequestsPerSecond))))
	if r.Batch > 1 {
		t.add("IDS", fmt.Sprintf("%s (%s a second)", grouped(r.IDs), grouped(int64(r.IDsPerSecond))))
	}
	t.add("LATENCY", r.latencyText())
	t.add("ERRORS", r.errorText())
	if r.Unanswered > 0 {
		t.add("UNANSWERED", grouped(r.Unanswered)+" requests were due, and not answered in time")
	}
	t.add("CHECK", r.checkText())
	t.add("CLIENT CPU", r.clientText())
	if s := r.Server; s != nil {
		t.add("SERVER CPU", fmt.Sprintf("%.0f %% of a core, %.2f s a million requests", 100*s.CPU/r.Seconds, s.PerMillion))
		t.add("SERVER RSS", fmt.Sprintf("%.1f MiB", float64(s.Resident)/(1<<20)))
	}
	if err := t.print(w, false); err != nil {
		return err
	}
	if r.Check != nil {
		for _, e := range r.Check.Examples {
			if _, err := fmt.Fprintf(w, "wrong: %s\n", e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r benchReport) measured() string {
	text := fmt.Sprintf("%.1f s", r.Seconds)
	if r.Warmup > 0 {
		text += fmt.Sprintf(" after %s", time.Duration(r.Warmup*float64(time.Second)))
	}
	if r.Interrupted {
		text += ", interrupted"
	}
	return text
}

func (r benchReport) latencyText() string {
	l := r.Latency
	if l.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, p99.9 %s, max %s", micros(l.P50), micros(l.P90), micros(l.P99), micros(l.P999), micros(l.Max))
}

// micros formats a latency in microseconds with three significant digits and a unit.
func micros(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.3gus", us)
	case us < 1e6:
		return fmt.Sprintf("%.3gms", us/1e3)
	}
	return fmt.Sprintf("%.3gs", us/1e6)
}

func (r benchReport) errorText() string {
	if r.Errors.Total == 0 {
		return "none"
	}
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(r.Errors.ByCode)) {
		parts = append(parts, fmt.Sprintf("%s %s", clusterview.Clean(code), grouped(r.Errors.ByCode[code])))
	}
	return strings.Join(parts, ", ")
}

func (r benchReport) checkText() string {
	k := r.Check
	if k == nil {
		return "none: the IDs were not checked"
	}
	text := fmt.Sprintf("%s IDs, no duplicates, increasing on each connection", grouped(k.IDs))
	if k.Duplicates+k.Backwards > 0 {
		text = fmt.Sprintf("%s IDs: %s DUPLICATES, %s OUT OF ORDER on their connection", grouped(k.IDs), grouped(k.Duplicates), grouped(k.Backwards))
	}
	if k.Unchecked > 0 {
		text += fmt.Sprintf(", %s too old to check for duplicates", grouped(k.Unchecked))
	}
	return text
}

// nearlyAll is the share of its threads' time that a generator may use. Above it, the result
// may be the generator's limit and not the node's.
const nearlyAll = 0.95

func (r benchReport) clientText() string {
	if r.Seconds == 0 || r.ClientCPU == 0 {
		return "-"
	}
	busy := r.ClientCPU / r.Seconds
	text := fmt.Sprintf("%.0f %% of a core", 100*busy)
	if r.Rate == 0 && busy > nearlyAll*float64(r.Threads) {
		text += ": the generator may be the limit. Try --threads or --no-check"
	}
	return text
}

// verdict returns the error that sets the exit code, nil for exitOK.
func (r benchReport) verdict() error {
	var wrong []string
	if k := r.Check; k != nil && k.Duplicates+k.Backwards > 0 {
		wrong = append(wrong, fmt.Sprintf("%s duplicate IDs, %s out of order", grouped(k.Duplicates), grouped(k.Backwards)))
	}
	if r.Unanswered > 0 && r.Rate == 0 {
		wrong = append(wrong, fmt.Sprintf("%s requests were not answered", grouped(r.Unanswered)))
	}
	if r.Errors.Total > 0 { // the last, as its advice ends the sentence
		wrong = append(wrong, errorSummary(r.Errors))
	}
	if len(wrong) > 0 {
		return exitWith(exitFailure, "%s", strings.Join(wrong, ", "))
	}
	if r.Unanswered > 0 {
		return exitWith(exitDegraded, "the node did not keep up with %s requests a second: %s were not answered in time", grouped(int64(r.Rate)), grouped(r.Unanswered))
	}
	return nil
}

func errorSummary(e load.ErrorsReport) string {
	most := ""
	for _, code := range slices.Sorted(maps.Keys(e.ByCode)) {
		if most == "" || e.ByCode[code] > e.ByCode[most] {
			most = code
		}
	}
	return fmt.Sprintf("%s errors, most of them %s%s", grouped(e.Total), clusterview.Clean(most), meaning(most))
}
