package health

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/ops/words"
)

// UsedText returns Used in percent.
func (r *SequenceReport) UsedText() string { return ratioText(r.usedOf()) }

// UsedUp returns when the values are used up at the rate that is known, "" if no rate is known or none are left. now is
// Unix ms.
func (r *SequenceReport) UsedUp(now int64) string { return r.note().usedUp(now) }

func (q SequenceNote) usedUp(now int64) string {
	left := max(0, q.Positions-q.Taken) + q.Held
	if q.PerSecond <= 0 || left == 0 {
		return ""
	}
	return usedUpText(left, q.PerSecond, now)
}

// text returns the name of a sequence, with what its problem adds.
func (q SequenceNote) text(adds addition, now int64) string {
	why := q.Why
	switch {
	case adds == addUsed:
		why = ratioText(q.Taken, q.Positions)
	case adds == addHeld && q.Held > 0:
		why = "nodes hold " + words.Grouped(q.Held)
	}
	if when := q.usedUp(now); why != q.Why && when != "" {
		why += ", used up " + when + ", at " + words.PerSecond(q.PerSecond)
	}
	if why == "" {
		return q.Name
	}
	return q.Name + " (" + why + ")"
}

// ratioText returns a part in percent. Only 0 has 0%, and only all has 100%.
func ratioText(done, all int64) string {
	percent := ratio(done, all) * 100
	switch {
	case done == 0:
		return "0%"
	case done >= all:
		return "100%"
	case percent < 0.1:
		return "<0.1%"
	case percent > 99.9:
		return ">99.9%"
	}
	return fmt.Sprintf("%.1f%%", percent)
}

// usedUpText returns when so many values are used up at this rate, "in about 12 days, 2026-12-11". It gets more exact
// only as the time gets shorter, so that the text changes seldom. now is Unix ms.
func usedUpText(left int64, perSecond float64, now int64) string {
	const minute, hour, day, year = 60, 3600, 24 * 3600, 365 * 24 * 3600
	seconds := float64(left) / perSecond
	if seconds >= 100*year {
		return "in more than 100 years"
	}
	ends := time.UnixMilli(now).Add(time.Duration(seconds * float64(time.Second))).UTC()
	switch {
	case seconds >= 2*year:
		return fmt.Sprintf("in about %.0f years, %s", seconds/year, ends.Format("2006"))
	case seconds >= 2*day:
		return fmt.Sprintf("in about %.0f days, %s", seconds/day, ends.Format(time.DateOnly))
	case seconds >= 2*hour:
		return fmt.Sprintf("in about %.0f hours, %s UTC", seconds/hour, ends.Format("2006-01-02 15:04"))
	case seconds >= 2*minute:
		return fmt.Sprintf("in about %.0f minutes, %s UTC", seconds/minute, ends.Format("15:04"))
	}
	return "in less than 2 minutes"
}

// OfSections says how many of all sections something is true for.
func OfSections(some, all int) string {
	return fmt.Sprintf("%d of %s", some, words.Count(int64(all), "section"))
}
