package web

import (
	"math"
	"strconv"
	"strings"

	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// The sizes of a chart, in the units of its SVG. The labels of the scale are left of the plot.
const (
	plotLeft, plotTop, plotHeight = 54, 7, 80
	stepWidth                     = 3 // of one interval
)

// chart is a line over the last 15 minutes, as page.html draws it.
type chart struct {
	ID, Title string
	About     string // what the line is, in sentences, for readers who do not see it
	Text      string // the values now, and the lowest and highest ones
	Begin     string // the times at which it begins and ends
	End       string
	Ticks     []tick
	Limits    []limit
	Gaps      []gap  // where nothing was sampled
	Path      string // of the line, in SVG's words
}

// tick is a horizontal line of a chart.
type tick struct {
	Y     string
	Label string // empty for none
}

// limit is a horizontal line with a label inside the chart.
type limit struct {
	tick
	LabelY string
}

// gap is a part of a chart, from left to right.
type gap struct{ X, Width int }

// scale says where in a chart a value is.
type scale struct {
	bottom, top float64
	log         bool
	label       func(float64) string
}

// y returns the distance of a value from the top of the chart. Values outside the scale are at its end.
func (s scale) y(v float64) string { return units(s.at(v)) }

// at is y as a number.
func (s scale) at(v float64) float64 {
	bottom, top, v := s.bottom, s.top, min(max(v, s.bottom), s.top)
	if s.log {
		bottom, top, v = math.Log10(bottom), math.Log10(top), math.Log10(v)
	}
	return plotTop + plotHeight*(top-v)/(top-bottom)
}

// units formats a number with one digit after the point at most.
func units(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func (s scale) ticks() (out []tick) {
	if !s.log {
		for _, v := range []float64{s.top, (s.top + s.bottom) / 2, s.bottom} {
			out = append(out, tick{s.y(v), s.label(v)})
		}
		return out
	}
	decades := int(math.Round(math.Log10(s.top / s.bottom)))
	for i := range decades + 1 {
		v := s.bottom * math.Pow10(i)
		t := tick{Y: s.y(v)}
		if decades < 5 || i%2 == 0 { // else the labels would overlap
			t.Label = s.label(v)
		}
		out = append(out, t)
	}
	return out
}

// rateScale returns a scale from 0 for a number per second.
func rateScale(_, highest float64) scale {
	return scale{top: roundUp(max(highest, 1)), label: func(v float64) string {
		switch {
		case v == 0:
			return "0"
		case v >= 1e6:
			return units(v/1e6) + "M/s"
		case v >= 1e4:
			return units(v/1e3) + "k/s"
		case v >= 1e3:
			return words.Grouped(int64(math.Round(v))) + "/s"
		}
		return units(v) + "/s"
	}}
}

// latencyScale returns a scale of powers of ten for seconds. Latencies are known by buckets, each twice as wide as the
// one before, and differ by as much.
func latencyScale(lowest, highest float64) scale {
	bottom := math.Pow10(int(math.Floor(math.Log10(lowest))))
	return scale{bottom: bottom, top: max(math.Pow10(int(math.Ceil(math.Log10(highest)))), 10*bottom), log: true,
		label: duration}
}

// offsetScale returns a scale for ms that has 0 in its middle, and the offset above which a node warns.
func offsetScale(lowest, highest float64) scale {
	top := roundUp(max(-lowest, highest, health.WarnOffsetMs))
	return scale{bottom: -top, top: top, label: func(v float64) string {
		if v == 0 {
			return "0"
		}
		return signed(v, words.Duration(int64(math.Abs(v))))
	}}
}

// signed puts the sign of v before a text.
func signed(v float64, text string) string {
	switch {
	case v > 0:
		return "+" + text
	case v < 0:
		return "-" + text
	}
	return text
}

// roundUp returns the next number of the series 1, 2, 5, 10, 20, 50.
func roundUp(v float64) float64 {
	ten := math.Pow10(int(math.Floor(math.Log10(v))))
	for _, n := range []float64{1, 2, 5} {
		if v <= n*ten {
			return n * ten
		}
	}
	return 10 * ten
}

// limits returns the lines of offsets by which a clock is judged, without those that would touch the line of 0.
// A label is above its line if there is room for it: below it, the limit below 0 may be close.
func (s scale) limits(all ...tickAt) (out []limit) {
	const textHeight = 11
	for _, l := range all {
		if l.at > s.top || l.at < s.top/10 {
			continue
		}
		label := s.at(l.at) - 3
		if label < plotTop+textHeight {
			label = s.at(l.at) + textHeight
		}
		out = append(out, limit{tick{s.y(l.at), l.label}, units(label)}, limit{tick: tick{Y: s.y(-l.at)}})
	}
	return out
}

// tickAt is a line of a chart by its value.
type tickAt struct {
	at    float64
	label string
}

// path returns a line through the values. It has a gap where a value is not known.
func (s scale) path(all []float64) string {
	var b strings.Builder
	drawn := false // the value before
	for i, v := range all {
		if math.IsNaN(v) {
			drawn = false
			continue
		}
		b.WriteString(map[bool]string{false: "M", true: "L"}[drawn])
		b.WriteString(strconv.Itoa(plotLeft+stepWidth*i+stepWidth/2) + " " + s.y(v))
		if alone := !drawn && (i+1 == len(all) || math.IsNaN(all[i+1])); alone {
			b.WriteString("h0") // a dot
		}
		drawn = true
	}
	return b.String()
}

// gapsOf returns the parts of a chart without samples.
func gapsOf(sampled []bool) (out []gap) {
	for i, is := range sampled {
		switch {
		case is:
		case i > 0 && !sampled[i-1]:
			out[len(out)-1].Width += stepWidth
		default:
			out = append(out, gap{plotLeft + stepWidth*i, stepWidth})
		}
	}
	return out
}

// rangeOf returns the lowest and the highest of the values that are known, and where the highest one is, -1 if none is
// known.
func rangeOf(all []float64) (lowest, highest float64, at int) {
	at = -1
	for i, v := range all {
		if math.IsNaN(v) {
			continue
		}
		if at < 0 || v < lowest {
			lowest = v
		}
		if at < 0 || v >= highest {
			highest, at = v, i
		}
	}
	return lowest, highest, at
}
