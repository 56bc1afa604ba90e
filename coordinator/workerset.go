package coordinator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// WorkerSet is a set of workers as text, like "0-15,900-1023". The ranges ascend and do not
// touch, so equal sets are equal strings. "" is the empty set.
type WorkerSet string

// span is the workers from first to last.
type span struct{ first, last int }

// ParseWorkerSet parses a comma-separated list of workers and ranges, in any order. It
// returns an error for a worker at or above slots.
func ParseWorkerSet(text string, slots int) (WorkerSet, error) {
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseSpan(strings.TrimSpace(part))
		if err != nil {
			return "", fmt.Errorf("workers %q: %w", text, err)
		}
		if s.last >= slots {
			return "", fmt.Errorf("workers %q: the layout has workers 0 to %d", text, slots-1)
		}
		spans = append(spans, s)
	}
	return format(spans), nil
}

// AllWorkers returns the set of the workers 0 to slots - 1.
func AllWorkers(slots int) WorkerSet { return format([]span{{0, slots - 1}}) }

func parseSpan(text string) (span, error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 31)
	last, err2 := strconv.ParseUint(to, 10, 31)
	if err1 != nil || err2 != nil || last < first {
		return span{}, fmt.Errorf("%q is neither a worker nor a range like 900-1023", text)
	}
	return span{int(first), int(last)}, nil
}

// spans returns the ranges of the set. An invalid text counts as the empty set, so that no
// worker is open by mistake.
func (s WorkerSet) spans() (spans []span) {
	if s == "" {
		return nil
	}
	for part := range strings.SplitSeq(string(s), ",") {
		one, err := parseSpan(part)
		if err != nil {
			return nil
		}
		spans = append(spans, one)
	}
	return spans
}

// Has reports whether a worker is in the set.
func (s WorkerSet) Has(worker int) bool {
	return slices.ContainsFunc(s.spans(), func(r span) bool { return r.first <= worker && worker <= r.last })
}

// Union returns the workers that are in either set.
func (s WorkerSet) Union(other WorkerSet) WorkerSet {
	return format(append(s.spans(), other.spans()...))
}

// Minus returns the workers of s that are not in other.
func (s WorkerSet) Minus(other WorkerSet) WorkerSet {
	left := s.spans()
	for _, cut := range other.spans() {
		var next []span
		for _, r := range left {
			if before := (span{r.first, min(r.last, cut.first-1)}); before.first <= before.last {
				next = append(next, before)
			}
			if after := (span{max(r.first, cut.last+1), r.last}); after.first <= after.last {
				next = append(next, after)
			}
		}
		left = next
	}
	return format(left)
}

// format returns the ranges as a WorkerSet. It joins ranges that touch or overlap.
func format(spans []span) WorkerSet {
	slices.SortFunc(spans, func(a, b span) int { return a.first - b.first })
	var joined []span
	for _, r := range spans {
		if n := len(joined); n > 0 && r.first <= joined[n-1].last+1 {
			joined[n-1].last = max(joined[n-1].last, r.last)
		} else {
			joined = append(joined, r)
		}
	}
	var parts []string
	for _, r := range joined {
		text := strconv.Itoa(r.first)
		if r.last > r.first {
			text += "-" + strconv.Itoa(r.last)
		}
		parts = append(parts, text)
	}
	return WorkerSet(strings.Join(parts, ","))
}
