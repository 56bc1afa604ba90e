package chaos

import (
	"sort"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/judge"
)

const (
	// slackMs is how late a step may be noticed, on a machine with more to do than
	// it can; and how much earlier than it was asked for an ID may lie else.
	slackMs, earlyMs = 150, 25
	// leapMs: Leaf's rule lets an ID be 5 ms ahead of a clock that went back; and
	// the rounding of ours.
	leapMs = 6
	// follows is how far ahead a clock may step at once without being doubted;
	// and how far it may be off and still be confirmed by most others.
	follows, agreed = time.Second, 5 * time.Second
)

// showing is between which errors the clock that a node issues by lies, from a
// moment on.
type showing struct {
	from      int64
	low, high time.Duration
}

// track follows the issuing clock through what was done to a machine's. It
// follows at once, but for a leap: then it may lag behind until that is
// confirmed, which nobody does for one that is wrong. It is never ahead of the
// clock. A process starts with what the clock shows, and one that is well has
// caught up with it.
func track(clocks []clockAt) []showing {
	var all []showing
	for _, c := range clocks {
		s := showing{c.at, c.offset, c.offset}
		if len(all) > 0 && !c.exact {
			before := all[len(all)-1]
			if c.offset > before.low+follows {
				s.low = before.low
			}
			if c.offset > before.high+follows && c.offset > agreed {
				s.high = before.high
			}
		}
		all = append(all, s)
	}
	return all
}

// shown is between which errors it was in a stretch of time; a step that has
// just been may not have been noticed yet.
func shown(all []showing, from, to int64) (low, high time.Duration) {
	first := sort.Search(len(all), func(i int) bool { return all[i].from > from-slackMs*1e6 }) - 1
	s := all[max(0, first)]
	low, high = s.low, s.high
	for i := max(0, first) + 1; i < len(all) && all[i].from <= to; i++ {
		low, high = min(low, all[i].low), max(high, all[i].high)
	}
	return low, high
}

// steps are when IDs of a machine may go back: its clock did, by more than it
// waits for, and it may have taken another worker.
func steps(m *machine) (spans []judge.Span) {
	for i := 1; i < len(m.clocks); i++ {
		if back := m.clocks[i-1].offset - m.clocks[i].offset; back > 5*time.Millisecond {
			at := m.clocks[i].at
			spans = append(spans, judge.Span{Node: uint16(m.id), From: at - slackMs*1e6, To: at + int64(6*time.Second)})
		}
	}
	return spans
}

func TestTrack(t *testing.T) {
	const year = 365 * 24 * time.Hour
	s := int64(time.Second)
	clocks := []clockAt{
		{0, 10, true}, {1 * s, 900 * time.Millisecond, false}, {2 * s, year, false}, {3 * s, 0, false},
		{4 * s, -time.Hour, false}, {5 * s, 0, false}, {6 * s, 30 * time.Second, true},
		{7 * s, -4 * time.Second, false}, {8 * s, 0, false}, {9 * s, 0, true},
	}
	all := track(clocks)
	for _, row := range []struct {
		name      string
		from, to  float64
		low, high time.Duration
	}{
		{"at first", 0.5, 0.6, 10, 10},
		{"a step ahead is followed", 1.5, 1.6, 900 * time.Millisecond, 900 * time.Millisecond},
		{"a leap is not", 2.5, 2.6, 900 * time.Millisecond, 900 * time.Millisecond},
		{"back", 3.5, 3.6, 0, 0},
		{"back, and not noticed yet", 3.1, 3.1, 0, 900 * time.Millisecond},
		{"an hour back", 4.5, 4.6, -time.Hour, -time.Hour},
		{"right again: confirmed", 5.5, 5.6, -time.Hour, 0},
		{"over a step", 3.5, 4.5, -time.Hour, 0},
		{"a new process", 6.5, 6.6, 30 * time.Second, 30 * time.Second},
		{"some seconds back, which others agree with", 7.5, 7.6, -4 * time.Second, -4 * time.Second},
		{"right again: confirmed, or not yet", 8.5, 8.6, -4 * time.Second, 0},
		{"well: caught up", 9.5, 9.6, 0, 0},
	} {
		low, high := shown(all, int64(row.from*1e9), int64(row.to*1e9))
		if low != row.low || high != row.high {
			t.Errorf("%s: %s to %s, want %s to %s", row.name, low, high, row.low, row.high)
		}
	}
}
