package load

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report has the measurements of a run. It is the JSON of `flaked bench -o json`. Scripts rely
// on it: fields may be added, but not changed.
type Report struct {
	Addr     string  `json:"addr"` // for the caller to set
	Conns    int     `json:"conns"`
	Pipeline int     `json:"pipeline"`
	Batch    int     `json:"batch"`
	Rate     float64 `json:"rate"` // 0: closed loop
	Warmup   float64 `json:"warmup_seconds"`
	// Seconds is the measured time: less than the configured one if the run was interrupted.
	Seconds     float64 `json:"seconds"`
	Interrupted bool    `json:"interrupted"`
	// Requests counts the requests that were answered without an error in the measured time.
	Requests          int64         `json:"requests"`
	RequestsPerSecond float64       `json:"requests_per_second"`
	IDs               int64         `json:"ids"`
	IDsPerSecond      float64       `json:"ids_per_second"`
	Latency           LatencyReport `json:"latency_us"`
	Errors            ErrorsReport  `json:"errors"`
	// Unanswered is how many requests were due before the end and got no reply within the
	// timeout after it.
	Unanswered int64       `json:"unanswered"`
	Check      CheckResult `json:"check"` // of all IDs of the run
}

// LatencyReport has the latencies in microseconds of all requests that were due in the measured
// time. Requests that were never answered are in it with the time that they waited.
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

// ErrorsReport counts errors from the start of the run, in all and by code. Codes of replies are
// in capitals, codes of the generator in small letters.
type ErrorsReport struct {
	Total  int64            `json:"total"`
	ByCode map[string]int64 `json:"by_code"`
	// Refused is the last refusal of a connection that was opened again, as by a node of another cluster. "" is none.
	Refused string `json:"refused"`
}

// Codes of errors that are not replies.
const (
	codeClosed   = "closed"   // the server closed the connection
	codeBroken   = "broken"   // the connection broke: reset, and the like
	codeTimeout  = "timeout"  // no reply within the timeout
	codeProtocol = "protocol" // bytes that are no reply
	codeConnect  = "connect"  // a lost connection could not be opened again
)

// report returns the report of a run whose connections have ended.
func (r *run) report() *Report {
	cfg := r.cfg
	seconds := max(r.until.Load()-r.from, 0)
	rate := func(n int64) float64 {
		if seconds == 0 {
			return 0
		}
		return rounded(float64(n) / time.Duration(seconds).Seconds())
	}
	ids := r.good * int64(cfg.Batch)
	return &Report{
		Conns: cfg.Conns, Pipeline: cfg.Pipeline, Batch: cfg.Batch, Rate: cfg.Rate, Warmup: cfg.Warmup.Seconds(),
		Seconds: rounded(time.Duration(seconds).Seconds()), Interrupted: seconds < int64(cfg.Duration),
		Requests: r.good, RequestsPerSecond: rate(r.good), IDs: ids, IDsPerSecond: rate(ids),
		Latency: latencyOf(r.latency), Errors: ErrorsReport{r.failed, r.errors, r.refused}, Unanswered: r.unanswered,
		Check: r.checker.result,
	}
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
