package web

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/lineproto"
)

// loadFor is the time over which the page averages the node's counters.
const loadFor = time.Minute

// past has the node's counters when the page was rendered, for loadFor, one sample a second at most.
type past struct {
	mu      sync.Mutex // guards samples
	samples []sample   // oldest first
}

// sample is the node's counters at one moment.
type sample struct {
	at         time.Time
	ok, failed int64
	ids        int64
	durations  []int64 // by bucket
	bucketEnds []float64
}

// note adds a sample, and returns the oldest one. The oldest one is from the start of the process, or was made at
// least loadFor ago if there is one. more is the number of IDs handed out over HTTP.
func (p *past) note(start, now time.Time, c lineproto.Counters, more int64) (before, last sample) {
	last = sample{at: now, ids: c.IDs + more, durations: c.Durations.N, bucketEnds: c.Durations.Bounds}
	for _, r := range c.Requests {
		if r.Result == "OK" {
			last.ok += r.N
		} else {
			last.failed += r.N
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.samples) == 0 {
		p.samples = append(p.samples, sample{at: start})
	}
	if newest := len(p.samples) - 1; newest > 0 && now.Sub(p.samples[newest].at) < time.Second {
		return p.samples[0], last
	}
	p.samples = append(p.samples, last)
	for len(p.samples) > 2 && now.Sub(p.samples[1].at) >= loadFor {
		p.samples = slices.Delete(p.samples, 0, 1)
	}
	return p.samples[0], last
}

// loadView has the node's rates and latencies over the last minute, as text.
type loadView struct {
	Over                 string // the time over which the rates are averaged
	Requests, IDs, Fails string // a second; Fails is empty for none
	Median, P99          string
}

func describeLoad(before, last sample) loadView {
	passed := last.at.Sub(before.at)
	seconds := max(passed.Seconds(), 0.001)
	spread := between(before, last)
	v := loadView{
		Over:     view.Brief(max(0, passed.Milliseconds())),
		Requests: rate(float64(last.ok+last.failed-before.ok-before.failed) / seconds),
		IDs:      rate(float64(last.ids-before.ids) / seconds),
		Median:   quantile(spread, last.bucketEnds, 0.5), P99: quantile(spread, last.bucketEnds, 0.99),
	}
	if failed := last.failed - before.failed; failed > 0 {
		v.Fails = rate(float64(failed) / seconds)
	}
	return v
}

// rate formats a number per second.
func rate(v float64) string {
	if v > 0 && v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return view.Thousands(fmt.Sprintf("%.0f", v))
}

// between returns the number of requests in each bucket of durations from a to b.
func between(a, b sample) []int64 {
	out := slices.Clone(b.durations)
	for i := range out {
		if i < len(a.durations) {
			out[i] -= a.durations[i]
		}
	}
	return out
}

// quantile formats the upper end of the bucket that contains quantile q. ends are in seconds. If
// the quantile is above all ends, it formats the last end.
func quantile(n []int64, ends []float64, q float64) string {
	total := int64(0)
	for _, k := range n {
		total += k
	}
	if total == 0 || len(ends) == 0 {
		return "–"
	}
	need := int64(math.Ceil(q * float64(total)))
	for i, k := range n {
		if need -= k; need <= 0 {
			return latency(1000 * ends[min(i, len(ends)-1)])
		}
	}
	return latency(1000 * ends[len(ends)-1])
}

func latency(ms float64) string {
	switch {
	case ms < 1:
		return fmt.Sprintf("≤ %.0f µs", ms*1000)
	case ms < 1000:
		return fmt.Sprintf("≤ %.0f ms", ms)
	}
	return fmt.Sprintf("≤ %.1f s", ms/1000)
}
