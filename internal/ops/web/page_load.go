package web

import (
	"fmt"
	"math"
	"time"

	"github.com/flaked/flaked/internal/ops/words"
)

// loadFor is the time over which the page averages the node's counters.
const loadFor = time.Minute

// loadView has the node's rates and latencies over the last minute, as text.
type loadView struct {
	Over                 string // the time over which the rates are averaged
	Requests, IDs, Fails string // a second, with the unit; Fails is empty for none
	Median, P99          string
}

// loadOf returns the load since the newest sample that is at least loadFor old, or since the oldest one.
func loadOf(samples []sample, now sample) loadView {
	before := samples[0]
	for _, s := range samples[1:] {
		if now.at-s.at >= int64(loadFor) {
			before = s
		}
	}
	v, longest := between(before, now), longestOf(now)
	out := loadView{
		Over:     words.Duration(max(0, time.Duration(now.at-before.at).Milliseconds())),
		Requests: words.PerSecond(v[ofRequests]), IDs: words.PerSecond(v[ofIDs]),
		Median: latency(quantile(before.durations, now.durations, 0.5), longest), P99: latency(v[ofLatency], longest),
	}
	if v[ofRefused] > 0 {
		out.Fails = words.PerSecond(v[ofRefused])
	}
	return out
}

// longestOf returns the last end of the buckets of durations, in seconds.
func longestOf(s sample) float64 {
	if n := len(s.durations.Bounds); n > 0 {
		return s.durations.Bounds[n-1]
	}
	return math.Inf(1)
}

// latency formats a quantile. longest is the last end of the buckets, in seconds.
func latency(seconds, longest float64) string {
	switch {
	case math.IsNaN(seconds):
		return "–"
	case seconds > longest:
		return "> " + duration(longest)
	}
	return "≤ " + duration(seconds)
}

// duration formats seconds in one unit.
func duration(seconds float64) string {
	switch {
	case seconds < 0.001:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	case seconds < 10 && seconds != math.Trunc(seconds):
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%.0f s", seconds)
}
