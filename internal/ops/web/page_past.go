package web

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// pastView is the part of the page about the last 15 minutes.
type pastView struct {
	Since   string // since when there are samples, empty if that is more than 15 minutes ago
	Charts  []chart
	Minutes []minuteView // newest first
}

// minuteView is a row of the table, which has the values as text.
type minuteView struct {
	End   string // time of day
	Cells []string
}

// series describes a chart of the page.
type series struct {
	id, title, about string
	none             string // instead of values
	of               int    // the value
	scale            func(lowest, highest float64) scale
	text             func(v float64) string
}

// describePast returns the charts. now is the wall clock, and boot the boot clock at the same moment: times of day are
// counted back from now, and so are right after the wall clock was set.
func describePast(p []sample, began, boot int64, now time.Time, dev bool) (v pastView) {
	last := lastStep(p, boot)
	clock := func(step int64) string {
		return now.Add(time.Duration(step*int64(sampleEvery) - boot)).UTC().Format("15:04")
	}
	if begins := (last - pastSteps) * int64(sampleEvery); began > begins {
		v.Since = now.Add(time.Duration(began - boot)).UTC().Format(time.TimeOnly)
	}
	all, sampled := overTime(p, last)
	if len(p) < 2 {
		return v
	}
	charts := chartsOf(longestOf(p[len(p)-1]), dev)
	for _, c := range charts {
		line := make([]float64, pastSteps)
		for i := range all {
			line[i] = all[i][c.of]
		}
		drawn := c.draw(line, func(i int) string { return clock(last - int64(pastSteps-1-i)) })
		drawn.Gaps, drawn.Begin, drawn.End = gapsOf(sampled[:]), clock(last-pastSteps), clock(last)
		v.Charts = append(v.Charts, drawn)
	}
	for _, m := range byMinute(p, last) {
		row := minuteView{End: clock(m.end)}
		for _, c := range charts {
			row.Cells = append(row.Cells, c.cell(m.values[c.of]))
		}
		v.Minutes = append(v.Minutes, row)
	}
	return v
}

// chartsOf returns the charts of a node. longest is the last end of the buckets of durations. The clock of a
// development node has no other clock to be compared with.
func chartsOf(longest float64, dev bool) []series {
	all := []series{
		{"requests", "Requests", "Requests a second over the line protocol.", "", ofRequests, rateScale, words.PerSecond},
		{"ids", "IDs", "IDs a second.", "", ofIDs, rateScale, words.PerSecond},
		{"refused", "Refused", "Requests a second that got an error.", "", ofRefused, rateScale, words.PerSecond},
		{"latency", "Latency p99", "99 of 100 requests took no longer. No line: no requests.", "no requests", ofLatency,
			latencyScale, func(v float64) string { return latency(v, longest) }},
		{"offset", "Clock offset", fmt.Sprintf("Offset of the clock from that of ZooKeeper's leader, above 0 if it is "+
			"ahead. No line: not compared. The node warns beyond %s, and refuses if most clocks are more than %s away.",
			limits.WarnSkew, limits.ClocksAgree), "not compared", ofOffset, offsetScale,
			func(v float64) string { return signed(v, words.OffsetWithoutSign(v)) }},
	}
	if dev {
		return all[:ofOffset]
	}
	return all
}

// cell formats a value that may be unknown.
func (c series) cell(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return c.text(v)
}

// draw returns the chart of the values. clock returns the time of day at which the interval of a value ends.
func (c series) draw(line []float64, clock func(i int) string) chart {
	out := chart{ID: c.id, Title: c.title, About: c.about}
	lowest, highest, at := rangeOf(line)
	now, none := line[len(line)-1], cmp.Or(c.none, "no samples")
	said := "now " + c.cell(now)
	if math.IsNaN(now) {
		said = none + " now"
	}
	switch {
	case at < 0:
		lowest, highest = 0.001, 0.001 // for a scale without a line
		out.Text = none
	case lowest == highest && now == highest:
		out.Text = c.text(now) + " all the time"
	default:
		out.Text = fmt.Sprintf("%s, lowest %s, highest %s at %s", said, c.text(lowest), c.text(highest), clock(at))
	}
	s := c.scale(lowest, highest)
	out.Ticks, out.Path = s.ticks(), s.path(line)
	if c.of == ofOffset {
		out.Limits = s.limits(tickAt{health.WarnOffsetMs, "warns"},
			tickAt{float64(limits.ClocksAgree.Milliseconds()), "refuses"})
	}
	return out
}
