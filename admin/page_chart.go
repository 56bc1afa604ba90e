package admin

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/clusterview"
)

// A chart is drawn 600 units wide and 100 high, and the browser stretches it. Text would be
// stretched with it, so labels are HTML beside the chart.
const (
	chartWidth  = 600.0
	chartHeight = 100.0
)

// chartView is the chart of clock offsets over the last ten minutes.
type chartView struct {
	// Logarithmic is set if the scale is logarithmic, which it is above linearTop.
	Logarithmic bool
	// Grid are the y positions of the grid lines, from the top. Ticks are their labels,
	// some of them empty.
	Grid  []float64
	Ticks []string
	// Limits are the y positions of the offsets that deserve a warning, above and below 0.
	Limits []float64
	// Lines are the workers with the largest offsets, at most maxLines. Others is how many
	// measured workers have no line. Bands are polygons between the smallest and the
	// largest offset of those others. A gap in the data starts a new polygon.
	Lines  []lineView
	Bands  []string
	Others int
	// Words describes the chart for readers who cannot see it.
	Words string
}

type lineView struct {
	Class  string
	Slot   *slotView
	Points []string // one for each gapless piece
	Bands  []string // polygons of the uncertainty around the pieces
	worst  float64
}

// maxLines is how many lines a reader can tell apart.
const maxLines = 8

// clockChart draws the offsets of the last ten minutes before now.
func clockChart(past []clocks, slots []slotView, now time.Time) chartView {
	worst := make([]float64, maxTraced)
	for w := range worst {
		worst[w] = -1 // never measured
	}
	for _, c := range past {
		for w, ms := range c.ms {
			if abs := math.Abs(float64(ms)); abs > worst[w] { // never NaN
				worst[w] = abs
			}
		}
	}
	var v chartView
	top := 0.0
	for i, w := range slots {
		if w.Worker >= maxTraced || worst[w.Worker] < 0 {
			continue
		}
		top = max(top, worst[w.Worker])
		v.Lines = append(v.Lines, lineView{Slot: &slots[i], worst: worst[w.Worker]})
	}
	slices.SortStableFunc(v.Lines, func(a, b lineView) int { return cmp.Compare(b.worst, a.worst) })
	v.Others = max(0, len(v.Lines)-maxLines)
	v.Lines = v.Lines[:min(len(v.Lines), maxLines)]
	// Sorted by number, the lines keep their colours while the order of offsets changes.
	slices.SortFunc(v.Lines, func(a, b lineView) int { return cmp.Compare(a.Slot.Worker, b.Slot.Worker) })

	scale := scaleFor(top)
	v.Logarithmic = scale.logarithmic
	y := func(ms float64) float64 { return chartHeight / 2 * (1 - scale.level(ms)) }
	x := func(at time.Time) float64 {
		return chartWidth * (1 - now.Sub(at).Seconds()/pastKept.Seconds())
	}
	for _, mark := range scale.marks {
		v.Grid, v.Ticks = append(v.Grid, y(mark.ms)), append(v.Ticks, mark.word)
	}
	if scale.limits {
		v.Limits = []float64{y(clusterview.WarnOffsetMs), y(-clusterview.WarnOffsetMs)}
	}
	for i := range v.Lines {
		v.Lines[i].Class = fmt.Sprintf("c%d", i)
		v.Lines[i].Points = pieces(past, v.Lines[i].Slot.Worker, x, y)
		v.Lines[i].Bands = doubts(past, v.Lines[i].Slot.Worker, x, y)
	}
	if v.Others > 0 {
		drawn := map[int]bool{}
		for _, l := range v.Lines {
			drawn[l.Slot.Worker] = true
		}
		v.Bands = bands(past, drawn, x, y)
	}
	v.Words = chartWords(v)
	return v
}

// pieces returns the points of worker w's line as SVG coordinates. A gap in the data starts a new
// piece.
func pieces(past []clocks, w int, x func(time.Time) float64, y func(float64) float64) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	for _, c := range past {
		if w >= len(c.ms) || c.ms[w] != c.ms[w] { // not known
			flush()
			continue
		}
		ms := float64(c.ms[w])
		// A second point makes a single one visible.
		if b.Len() == 0 {
			fmt.Fprintf(&b, "%.1f,%.1f", x(c.at)-1, y(ms))
		}
		fmt.Fprintf(&b, " %.1f,%.1f", x(c.at), y(ms))
	}
	flush()
	return out
}

// bands returns polygons around the offsets of all workers that are not drawn.
func bands(past []clocks, drawn map[int]bool, x func(time.Time) float64, y func(float64) float64) []string {
	return polygons(past, func(c clocks) (low, high float64, known bool) {
		low, high = math.Inf(1), math.Inf(-1)
		for w, ms := range c.ms {
			if ms == ms && !drawn[w] {
				low, high = min(low, float64(ms)), max(high, float64(ms))
			}
		}
		return low, high, low <= high
	}, x, y)
}

// doubts returns polygons of the uncertainty around the offsets of worker w.
func doubts(past []clocks, w int, x func(time.Time) float64, y func(float64) float64) []string {
	return polygons(past, func(c clocks) (low, high float64, known bool) {
		if w >= len(c.ms) || w >= len(c.uncertain) || c.ms[w] != c.ms[w] {
			return 0, 0, false
		}
		ms, uncertain := float64(c.ms[w]), float64(c.uncertain[w])
		return ms - uncertain, ms + uncertain, true
	}, x, y)
}

// polygons returns polygons that go right along the high values and back along the low ones. A
// gap in the data starts a new polygon.
func polygons(past []clocks, of func(clocks) (low, high float64, known bool), x func(time.Time) float64, y func(float64) float64) (out []string) {
	var there, back []string
	flush := func() {
		slices.Reverse(back)
		if len(there) > 1 {
			out = append(out, strings.Join(append(there, back...), " "))
		}
		there, back = nil, nil
	}
	for _, c := range past {
		low, high, known := of(c)
		if !known {
			flush()
			continue
		}
		there = append(there, fmt.Sprintf("%.1f,%.1f", x(c.at), y(high)))
		back = append(back, fmt.Sprintf("%.1f,%.1f", x(c.at), y(low)))
	}
	flush()
	return out
}

func chartWords(v chartView) string {
	if len(v.Lines) == 0 {
		return "No clocks have been compared yet."
	}
	var of []string
	for _, l := range v.Lines {
		clock := l.Slot.Clock
		if clock == "" {
			clock = "not known now"
		}
		of = append(of, fmt.Sprintf("worker %d %s", l.Slot.Worker, clock))
	}
	return "Clock offsets over ten minutes. Now: " + strings.Join(of, "; ") + "."
}

// loadView is the load of this node, now and over the last ten minutes.
type loadView struct {
	Known                bool
	Requests, IDs, Fails string // a second
	Median, P99          string
	Rate, Slow           sparkView
}

// sparkView is a line from 0 to its largest value, whose text is Most.
type sparkView struct {
	Points, Most string
}

// nowSamples is the number of sample intervals that count as "now": 4 s.
const nowSamples = 2

func describeLoad(samples []sample, now time.Time) loadView {
	n := len(samples)
	if n < 2 {
		return loadView{}
	}
	last, before := samples[n-1], samples[max(0, n-1-nowSamples)]
	seconds := last.at.Sub(before.at).Seconds()
	spread := between(before, last)
	v := loadView{
		Known:    true,
		Requests: rate(float64(last.ok+last.failed-before.ok-before.failed) / seconds),
		IDs:      rate(float64(last.ids-before.ids) / seconds),
		Median:   quantile(spread, last.bucketEnds, 0.5), P99: quantile(spread, last.bucketEnds, 0.99),
	}
	if failed := last.failed - before.failed; failed > 0 {
		v.Fails = rate(float64(failed) / seconds)
	}
	var rates, slow []float64
	for i := 1; i < n; i++ {
		a, b := samples[i-1], samples[i]
		rates = append(rates, float64(b.ok+b.failed-a.ok-a.failed)/b.at.Sub(a.at).Seconds())
		slow = append(slow, quantileMs(between(a, b), b.bucketEnds, 0.99))
	}
	v.Rate = spark(samples[1:], rates, now)
	v.Rate.Most = rate(slices.Max(rates)) + "/s"
	v.Slow = spark(samples[1:], slow, now)
	if most := slices.Max(slow); most > 0 {
		v.Slow.Most = latency(most)
	}
	return v
}

// rate formats a number per second.
func rate(v float64) string {
	if v > 0 && v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return clusterview.Thousands(fmt.Sprintf("%.0f", v))
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

// quantileMs returns the upper end, in ms, of the bucket that contains quantile q. It
// returns 0 if all buckets are empty, and the last end if the quantile is above all ends.
// ends are in seconds.
func quantileMs(n []int64, ends []float64, q float64) float64 {
	total := int64(0)
	for _, k := range n {
		total += k
	}
	if total == 0 || len(ends) == 0 {
		return 0
	}
	need := int64(math.Ceil(q * float64(total)))
	for i, k := range n {
		if need -= k; need <= 0 {
			return 1000 * ends[min(i, len(ends)-1)]
		}
	}
	return 1000 * ends[len(ends)-1]
}

func quantile(n []int64, ends []float64, q float64) string {
	ms := quantileMs(n, ends, q)
	if ms == 0 {
		return "–"
	}
	return latency(ms)
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

func spark(at []sample, values []float64, now time.Time) sparkView {
	most := slices.Max(values)
	if most == 0 {
		return sparkView{}
	}
	var b strings.Builder
	for i, v := range values {
		x := chartWidth * (1 - now.Sub(at[i].at).Seconds()/pastKept.Seconds())
		fmt.Fprintf(&b, "%.1f,%.1f ", x, 98-96*v/most)
	}
	return sparkView{Points: strings.TrimSpace(b.String())}
}
