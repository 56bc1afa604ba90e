package load

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is the JSON of `flaked bench -o json`. Scripts rely on it: fields may be added, but
// not changed.
type Report struct {
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
	Interrupted       bool          `json:"interrupted"`
	Requests          int64         `json:"requests"`
	RequestsPerSecond float64       `json:"requests_per_second"`
	IDs               int64         `json:"ids"`
	IDsPerSecond      float64       `json:"ids_per_second"`
	Latency           LatencyReport `json:"latency_us"`
	Errors            ErrorsReport  `json:"errors"`
	Unanswered        int64         `json:"unanswered"`
	Check             *CheckResult  `json:"check"` // null: not checked
	ClientCPU         float64       `json:"client_cpu_seconds"`
	Server            *ServerReport `json:"server"` // null: no --pid
}

// LatencyReport has the latencies in microseconds.
type LatencyReport struct {
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

// ErrorsReport counts the errors, in all and by code.
type ErrorsReport struct {
	Total  int64            `json:"total"`
	ByCode map[string]int64 `json:"by_code"`
}

// ServerReport is what the server used of its machine.
type ServerReport struct {
	PID        int     `json:"pid"`
	CPU        float64 `json:"cpu_seconds"`
	PerMillion float64 `json:"cpu_seconds_per_million_requests"`
	Resident   int64   `json:"rss_bytes"`
}

// NewReport returns the report of a run against the server at addr.
func NewReport(addr string, cfg Config, res *Result) *Report {
	r := &Report{
		Addr: addr, Protocol: string(cfg.Framing), Command: cfg.Command,
		Conns: cfg.Conns, Pipeline: cfg.Pipeline, Batch: cfg.Batch, Threads: min(cfg.Threads, cfg.Conns), Rate: cfg.Rate,
		Warmup: cfg.Warmup.Seconds(), Seconds: rounded(res.Elapsed.Seconds()), Interrupted: res.Interrupted,
		Requests: res.Requests, RequestsPerSecond: rounded(res.PerSecond(res.Requests)),
		IDs: res.IDs, IDsPerSecond: rounded(res.PerSecond(res.IDs)),
		Latency: latencyOf(res.Latency), Errors: ErrorsReport{res.ErrorCount(), res.Errors},
		Unanswered: res.Unanswered, Check: res.Check, ClientCPU: rounded(res.ClientCPU.Seconds()),
	}
	if r.Command == "" {
		r.Command = "GET"
		if cfg.Batch > 1 {
			r.Command = fmt.Sprintf("GET %d", cfg.Batch)
		}
	}
	if s := res.Server; s != nil {
		r.Server = &ServerReport{PID: cfg.PID, CPU: rounded(s.CPU.Seconds()), Resident: s.Resident}
		if res.Requests > 0 {
			r.Server.PerMillion = rounded(s.CPU.Seconds() * 1e6 / float64(res.Requests))
		}
	}
	return r
}

func latencyOf(h *hdrhistogram.Histogram) LatencyReport {
	us := func(ns int64) float64 { return rounded(float64(ns) / 1e3) }
	if h.TotalCount() == 0 {
		return LatencyReport{}
	}
	return LatencyReport{
		Count: h.TotalCount(), Min: us(h.Min()), Mean: rounded(h.Mean() / 1e3),
		P50: us(h.ValueAtQuantile(50)), P90: us(h.ValueAtQuantile(90)), P99: us(h.ValueAtQuantile(99)),
		P999: us(h.ValueAtQuantile(99.9)), P9999: us(h.ValueAtQuantile(99.99)), Max: us(h.Max()),
	}
}

// rounded rounds v to three decimals. The measurements are no more precise.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }
