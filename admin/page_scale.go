package admin

import (
	"math"
	"slices"

	"github.com/flaked/flaked/clusterview"
)

// offsetScale is the vertical scale of the chart of clock offsets.
type offsetScale struct {
	logarithmic bool
	top         float64 // ms at the upper edge of a linear scale
	steps       int     // of offsetSteps from 0 to the upper edge of a logarithmic scale
	marks       []offsetStep
	limits      bool // the offsets that deserve a warning are on the scale
}

// linearTop is the largest offset that a linear scale shows, in ms: 600. The page puts the marks
// at equal distances from edge to edge. It is just above the offset
// that deserves a warning. So the usual noise of some milliseconds looks flat, and a
// reader sees how far it is from a problem.
const linearTop = 1.2 * clusterview.WarnOffsetMs

// scaleFor returns the scale for offsets of at most worst ms.
func scaleFor(worst float64) offsetScale {
	if worst <= linearTop {
		return offsetScale{top: linearTop, limits: true, marks: []offsetStep{{600, "+600ms"}, {300, "+300ms"}, {0, "0"}, {-300, "-300ms"}, {-600, "-600ms"}}}
	}
	steps := int(math.Ceil(offsetLevel(worst)))
	steps += steps % 2 // even steps have labels
	s := offsetScale{logarithmic: true, steps: steps, limits: true}
	for step := steps; step >= -steps; step-- {
		of := offsetSteps[max(step, -step)]
		word := of.word
		switch {
		case step%2 != 0:
			word = ""
		case step > 0:
			word = "+" + word
		case step < 0:
			word = "-" + word
		}
		s.marks = append(s.marks, offsetStep{math.Copysign(of.ms, float64(step)), word})
	}
	return s
}

// level returns the position of an offset: 1 at the upper edge, 0 in the middle, -1 at the lower edge.
func (s offsetScale) level(ms float64) float64 {
	if s.logarithmic {
		return max(-1, min(1, offsetLevel(ms)/float64(s.steps)))
	}
	return max(-1, min(1, ms/s.top))
}

type offsetStep struct {
	ms   float64
	word string
}

// offsetSteps are the marks of the logarithmic scale of offsets, at equal distances. One
// chart can show both a millisecond and an hour.
var offsetSteps = []offsetStep{
	{0, "0"}, {1, "1ms"}, {10, "10ms"}, {100, "100ms"}, {1000, "1s"}, {10_000, "10s"}, {60_000, "1min"},
	{600_000, "10min"}, {3_600_000, "1h"}, {86_400_000, "1d"}, {31_536_000_000, "1y"}, {3_153_600_000_000, "100y"},
}

// offsetLevel returns the position of an offset on the scale, in steps of offsetSteps.
// Between two steps it interpolates the logarithm. It is negative for negative offsets.
func offsetLevel(ms float64) float64 {
	abs := math.Abs(ms)
	at := slices.IndexFunc(offsetSteps, func(s offsetStep) bool { return abs <= s.ms })
	switch at {
	case 0:
		return 0
	case 1: // linear below a millisecond, as 0 has no logarithm
		return math.Copysign(abs, ms)
	case -1:
		return math.Copysign(float64(len(offsetSteps)-1), ms)
	}
	low, high := offsetSteps[at-1].ms, offsetSteps[at].ms
	return math.Copysign(float64(at-1)+math.Log(abs/low)/math.Log(high/low), ms)
}
