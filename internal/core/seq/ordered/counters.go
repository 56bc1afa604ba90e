package ordered

import (
	"math"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
)

// counters has the positions that the owner of a section issues from: first to end. Each lane is a counter over all of
// them, so that names of different lanes may get the same positions. A plain ordered sequence has one lane.
type counters struct {
	first, end int64
	// lanes[k] is the first position that lane k has not issued. Below first, it counts as first. high is the highest.
	lanes []int64
	high  int64
	// highWritten is the value of high at the last write. Above lowAbove, the owner needs more positions.
	highWritten, lowAbove int64
}

// issue issues n positions of a lane, and returns the first. ok is false if there are not so many left.
func (c *counters) issue(lane int, n int64) (p int64, ok bool) {
	if p = c.at(lane); p+n > c.end {
		return 0, false
	}
	if lane >= len(c.lanes) {
		c.lanes = append(c.lanes, make([]int64, lane+1-len(c.lanes))...)
	}
	c.lanes[lane] = p + n
	c.high = max(c.high, p+n)
	return p, true
}

// at returns the first position that a lane has not issued.
func (c *counters) at(lane int) int64 {
	if lane >= len(c.lanes) {
		return c.first
	}
	return max(c.lanes[lane], c.first)
}

// begin makes all lanes begin at the first position of a block.
func (c *counters) begin(b positions.Block) {
	c.first, c.end, c.high = b.First, b.End, b.First
}

// add adds a block. If it does not follow the last one, an operator has raised the next value, and all lanes go on
// there.
func (c *counters) add(b positions.Block) {
	switch {
	case b.Len() == 0:
	case b.First == c.end:
		c.end = b.End
	default:
		c.begin(b)
	}
}

// skipTo makes no lane issue a position below p.
func (c *counters) skipTo(p int64) {
	c.first = max(c.first, p)
	if n := c.first - c.high; n > 0 { // they are not used
		c.high, c.highWritten = c.high+n, c.highWritten+n
	}
}

// rest returns the positions that no lane has issued.
func (c *counters) rest() positions.Block { return positions.Block{First: c.high, End: c.end} }

// wrote notes a write. Three quarters of what is left now may be used before another one is needed.
func (c *counters) wrote() {
	c.highWritten, c.lowAbove = c.high, c.end-max(1, (c.end-c.high)/4)
}

func (c *counters) low() bool { return c.high > c.lowAbove }

// usedThird reports whether a third is used of what may be used before another write is needed. A renewal takes more
// positions then, which saves that write.
func (c *counters) usedThird() bool { return 3*(c.high-c.highWritten) > c.lowAbove-c.highWritten }

// ahead is the time for which an owner takes positions in advance. What is left of them is a gap if it is killed.
const ahead = 4 * time.Second

// want returns how many more positions the owner would like, and how many it needs at least. They begin at next. took
// is the time since the last write.
func (c *counters) want(next int64, took time.Duration, smallest int64, waiting []mode.Request) (want, need int64) {
	used := c.high - c.highWritten
	rate := float64(used) / max(took, time.Millisecond).Seconds()
	if next != c.end { // an operator has raised the next value: see add
		raised := *c
		raised.begin(positions.Block{First: next, End: next})
		c = &raised
	}
	// A burst of a moment does not tell what comes.
	want = c.high + max(smallest, min(int64(rate*ahead.Seconds()), 8*used)) - c.end
	need = math.MaxInt64
	for _, r := range waiting {
		lacks := c.at(r.Lane) + r.N - c.end
		want, need = max(want, lacks), min(need, lacks)
	}
	if len(waiting) == 0 {
		need = 1
	}
	return max(1, want), max(1, need)
}
