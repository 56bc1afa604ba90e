package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/load"
)

// benchReport is the JSON of -o json. Scripts rely on it: fields may be added, but not changed.
type benchReport struct {
	Addr     string  `json:"addr"`
	Protocol string  `json:"protocol"`
	Command  string  `json:"command"`
	Conns    int     `json:"conns"`
	Pipeline int     `json:"pipeline"`
	Batch    int     `json:"batch"`
	Threads  int     `json:"threads"`
	Rate     float64 `json:"rate"` // 0: closed loop
	Warmup   float64 `json:"warmup_seconds"`
	Seconds  float64 `json:"seconds"`
	// Interrupted is true if the run was stopped before its end.
	Interrupted bool         `json:"interrupted"`
	Requests    int64        `json:"requests"`
	PerSecond   float64      `json:"requests_per_second"`
	IDs         int64        `json:"ids"`
	IDsSecond   float64      `json:"ids_per_second"`
	Latency     benchLatency `json:"latency_us"`
	Errors      benchErrors  `json:"errors"`
	Unanswered  int64        `json:"unanswered"`
	Check       *benchCheck  `json:"check"` // null: not checked
	ClientCPU   float64      `json:"client_cpu_seconds"`
	Server      *benchServer `json:"server"` // null: no --pid
}

type benchLatency struct {
	Count int64   `json:"count"`
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	P9999 float64 `json:"p9999"`
	Max   float64 `json:"max"`
}

type benchErrors struct {
	Total  int64            `json:"total"`
	ByCode map[string]int64 `json:"by_code"`
}

type benchCheck struct {
	IDs        int64    `json:"ids"`
	Duplicates int64    `json:"duplicates"`
	Backwards  int64    `json:"backwards"`
	Unchecked  int64    `json:"unchecked"`
	Examples   []string `json:"examples"`
}

type benchServer struct {
	PID        int     `json:"pid"`
	CPU        float64 `json:"cpu_seconds"`
	PerMillion float64 `json:"cpu_seconds_per_million_requests"`
	Resident   int64   `json:"rss_bytes"`
}

func newBenchReport(addr string, cfg load.Config, res *load.Result) *benchReport {
	r := &benchReport{
		Addr: addr, Protocol: string(cfg.Framing), Command: cfg.Command,
		Conns: cfg.Conns, Pipeline: cfg.Pipeline, Batch: cfg.Batch, Threads: min(cfg.Threads, cfg.Conns), Rate: cfg.Rate,
		Warmup: cfg.Warmup.Seconds(), Seconds: rounded(res.Elapsed.Seconds()), Interrupted: res.Interrupted,
		Requests: res.Requests, PerSecond: rounded(res.PerSecond(res.Requests)),
		IDs: res.IDs, IDsSecond: rounded(res.PerSecond(res.IDs)),
		Latency: latencyOf(res.Latency), Errors: benchErrors{res.ErrorCount(), res.Errors},
		Unanswered: res.Unanswered, ClientCPU: rounded(res.ClientCPU.Seconds()),
	}
	if r.Command == "" {
		r.Command = "GET"
		if cfg.Batch > 1 {
			r.Command = fmt.Sprintf("GET %d", cfg.Batch)
		}
	}
	if k := res.Check; k != nil {
		r.Check = &benchCheck{k.IDs, k.Duplicates, k.Backwards, k.Unchecked, append([]string{}, k.Examples...)}
	}
	if s := res.Server; s != nil {
		r.Server = &benchServer{PID: cfg.PID, CPU: rounded(s.CPU.Seconds()), Resident: s.Resident}
		if res.Requests > 0 {
			r.Server.PerMillion = rounded(s.CPU.Seconds() * 1e6 / float64(res.Requests))
		}
	}
	return r
}

func latencyOf(h *hdrhistogram.Histogram) benchLatency {
	us := func(ns int64) float64 { return rounded(float64(ns) / 1e3) }
	if h.TotalCount() == 0 {
		return benchLatency{}
	}
	return benchLatency{
		Count: h.TotalCount(), Min: us(h.Min()), Mean: rounded(h.Mean() / 1e3),
		P50: us(h.ValueAtQuantile(50)), P90: us(h.ValueAtQuantile(90)), P99: us(h.ValueAtQuantile(99)),
		P999: us(h.ValueAtQuantile(99.9)), P9999: us(h.ValueAtQuantile(99.99)), Max: us(h.Max()),
	}
}

// rounded rounds v to three decimals. The measurements are no more precise.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// print writes the report as a table, followed by examples of wrong IDs.
func (r *benchReport) print(w io.Writer) error {
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
	t.add("REQUESTS", fmt.Sprintf("%s (%s a second)", grouped(r.Requests), grouped(int64(r.PerSecond))))
	if r.Batch > 1 {
		t.add("IDS", fmt.Sprintf("%s (%s a second)", grouped(r.IDs), grouped(int64(r.IDsSecond))))
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

func (r *benchReport) measured() string {
	text := fmt.Sprintf("%.1f s", r.Seconds)
	if r.Warmup > 0 {
		text += fmt.Sprintf(" after %s", time.Duration(r.Warmup*float64(time.Second)))
	}
	if r.Interrupted {
		text += ", interrupted"
	}
	return text
}

func (r *benchReport) latencyText() string {
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

func (r *benchReport) errorText() string {
	if r.Errors.Total == 0 {
		return "none"
	}
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(r.Errors.ByCode)) {
		parts = append(parts, fmt.Sprintf("%s %s", clusterview.Clean(code), grouped(r.Errors.ByCode[code])))
	}
	return strings.Join(parts, ", ")
}

func (r *benchReport) checkText() string {
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

func (r *benchReport) clientText() string {
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
func (r *benchReport) verdict() error {
	var wrong []string
	if k := r.Check; k != nil && k.Duplicates+k.Backwards > 0 {
		wrong = append(wrong, fmt.Sprintf("%s duplicate IDs, %s out of order", grouped(k.Duplicates), grouped(k.Backwards)))
	}
	if r.Unanswered > 0 && r.Rate == 0 {
		wrong = append(wrong, fmt.Sprintf("%s requests were not answered", grouped(r.Unanswered)))
	}
	if r.Errors.Total > 0 { // the last, as its advice ends the sentence
		wrong = append(wrong, r.Errors.text())
	}
	if len(wrong) > 0 {
		return exitWith(exitFailure, "%s", strings.Join(wrong, ", "))
	}
	if r.Unanswered > 0 {
		return exitWith(exitDegraded, "the node did not keep up with %s requests a second: %s were not answered in time", grouped(int64(r.Rate)), grouped(r.Unanswered))
	}
	return nil
}

func (e benchErrors) text() string {
	most := ""
	for _, code := range slices.Sorted(maps.Keys(e.ByCode)) {
		if most == "" || e.ByCode[code] > e.ByCode[most] {
			most = code
		}
	}
	return fmt.Sprintf("%s errors, most of them %s%s", grouped(e.Total), clusterview.Clean(most), meaning(most))
}
