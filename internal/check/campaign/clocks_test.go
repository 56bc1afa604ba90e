package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"sort"
	"testing"
	"time"
)

const (
	// A node on an overloaded machine may notice a step of its clock slackMs late. Without a
	// step, a timestamp may precede the request by up to earlyMs.
	slackMs, earlyMs = 150, 25
	// A timestamp may be up to leapMs ahead of a clock that went back: 5 ms by Leaf's rule,
	// and 1 ms for rounding.
	leapMs = 6
	// A node follows a clock that steps ahead by up to follows at once. A longer leap must
	// be confirmed by most others, who accept an offset of up to agreed.
	follows, agreed = time.Second, 5 * time.Second
)

// showing bounds the offset of a node's issuing clock from a time on.
type showing struct {
	from      int64
	low, high time.Duration
}

// track derives the bounds of the issuing clock from the changes of a machine's clock.
//
// The issuing clock follows the machine's clock at once, except after a leap ahead. After a
// leap it may stay behind until the leap is confirmed. A leap to an offset above agreed is never
// confirmed. The issuing clock is never ahead of the machine's clock. It is equal at the start
// of a process, and when the node is well.
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

// shown returns the lowest and the highest offset that the issuing clock may have had between
// from and to. It includes the offset of slackMs earlier, because the node may not have noticed
// a later step yet.
func shown(all []showing, from, to int64) (low, high time.Duration) {
	first := sort.Search(len(all), func(i int) bool { return all[i].from > from-slackMs*1e6 }) - 1
	s := all[max(0, first)]
	low, high = s.low, s.high
	for i := max(0, first) + 1; i < len(all) && all[i].from <= to; i++ {
		low, high = min(low, all[i].low), max(high, all[i].high)
	}
	return low, high
}

// steps returns the spans in which a machine's IDs may go down. Its clock went back by more than
// the node waits for, so that the node may have acquired another worker.
func steps(m *machine) (spans []harness.Span) {
	for i := 1; i < len(m.clocks); i++ {
		if back := m.clocks[i-1].offset - m.clocks[i].offset; back > 5*time.Millisecond {
			at := m.clocks[i].at
			spans = append(spans, harness.Span{Node: uint16(m.ID), From: at - slackMs*1e6, To: at + int64(6*time.Second)})
		}
	}
	return spans
}

func TestTrackBoundsIssuingClock(t *testing.T) {
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
