//go:build linux

package main

import (
	"time"

	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/internal/load"
)

// Results holds all measurements. The file of raw results has them in JSON.
type Results struct {
	When     time.Time
	Machine  figures.Machine
	Rounds   int
	Seconds  float64 // of each measurement
	Versions map[string]string
	Runs     []Run
	Idle     []Idle
	Hostile  []Hostile
	Greedy   []Greedy
	// Sequences is nil unless only named sequences were measured.
	Sequences *Sequences
	// Missing maps contenders that could not be measured to the reasons.
	Missing map[Contender]string
}

// Run is one run of `flaked bench -o json`.
type Run struct {
	Case  string
	Who   Contender
	Round int
	Bench Bench
}

// Bench is the output of `flaked bench -o json`.
type Bench = load.Report

// Idle holds the resident memory of a server, in bytes: Before it had connections, when all
// Conns were Connected, and when it had Served one request on each.
type Idle struct {
	Who                       Contender
	Conns                     int
	Before, Connected, Served int64
}

// Metric returns one figure of a measurement.
type Metric func(b Bench) float64

func throughput(b Bench) float64 { return b.RequestsPerSecond }
func p50(b Bench) float64        { return b.Latency.P50 }
func p99(b Bench) float64        { return b.Latency.P99 }
func p999(b Bench) float64       { return b.Latency.P999 }

func perMillion(b Bench) float64 {
	if b.Server == nil {
		return 0
	}
	return b.Server.PerMillion
}

// busy returns the server's CPU time as a share of one core, from 0 to 1.
func busy(b Bench) float64 {
	if b.Server == nil || b.Seconds == 0 {
		return 0
	}
	return b.Server.CPU / b.Seconds
}

func clientBusy(b Bench) float64 {
	if b.Seconds == 0 {
		return 0
	}
	return b.ClientCPU / b.Seconds
}

// runs returns a contender's measurements in a case.
func (r *Results) runs(name string, who Contender) figures.Rounds[Bench] {
	out := figures.Rounds[Bench]{}
	for _, run := range r.Runs {
		if run.Case == name && run.Who == who {
			out[run.Round] = run.Bench
		}
	}
	return out
}

func (r *Results) median(name string, who Contender, m Metric) (float64, bool) {
	return r.runs(name, who).Median(m)
}

func (r *Results) ratio(name string, who, to Contender, m Metric) (float64, bool) {
	return r.runs(name, who).Ratio(r.runs(name, to), m)
}
