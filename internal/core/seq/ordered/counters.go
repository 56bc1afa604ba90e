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
	// lanes[k] is the first position that lane k has not issued. Below first, it counts as first. highest is the
	// highest of them.
	lanes   []int64
	highest int64
	// highestWritten is the value of highest at the last write. The owner needs more positions when highest is above
	// refillAbove.
	highestWritten, refillAbove int64
}

// issue issues n positions of a lane, and returns the first. ok is false if there are not so many left.
func (c *counters) issue(lane int, n int64) (p int64, ok bool) {
	if p = c.next(lane); p+n > c.end {
		return 0, false
	}
	if lane >= len(c.lanes) {
		c.lanes = append(c.lanes, make([]int64, lane+1-len(c.lanes))...)
	}
	c.lanes[lane] = p + n
	c.highest = max(c.highest, p+n)
	return p, true
}

// next returns the first position that a lane has not issued.
func (c *counters) next(lane int) int64 {
	if lane >= len(c.lanes) {
		return c.first
	}
	return max(c.lanes[lane], c.first)
}

// begin makes all lanes issue from a block, from its first position on. What was left before is dropped.
func (c *counters) begin(b positions.Block) {
	c.first, c.end, c.highest = b.First, b.End, b.First
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
	if n := c.first - c.highest; n > 0 { // positions that are skipped do not count as used: see demand
		c.highest, c.highestWritten = c.highest+n, c.highestWritten+n
	}
}

// unissued returns the positions that no lane has issued.
func (c *counters) unissued() positions.Block { return positions.Block{First: c.highest, End: c.end} }

// wrote notes a write. Three quarters of what is left now may be used before another one is needed.
func (c *counters) wrote() {
	c.highestWritten, c.refillAbove = c.highest, c.end-max(1, (c.end-c.highest)/4)
}

// needsRefill reports whether the owner must take more positions now.
func (c *counters) needsRefill() bool { return c.highest > c.refillAbove }

// usedThird reports whether a third is used of what may be used before another write is needed. A renewal takes more
// positions then, which saves that write.
func (c *counters) usedThird() bool {
	return 3*(c.highest-c.highestWritten) > c.refillAbove-c.highestWritten
}

// aheadTime is the time for which an owner takes positions in advance. What is left of them is a gap if it is killed.
const aheadTime = 4 * time.Second

// demand returns how many more positions the owner would like, and how many it needs at least. The new positions begin
// at next. sinceWrite is the time since the last write. The owner would like block positions or more to be left.
func (c *counters) demand(
	next int64, sinceWrite time.Duration, block int64, waiting []mode.Request,
) (want, need int64) {
	used := c.highest - c.highestWritten
	rate := float64(used) / max(sinceWrite, time.Millisecond).Seconds()
	if next != c.end { // an operator has raised the next value: see add
		raised := *c
		raised.begin(positions.Block{First: next, End: next})
		c = &raised
	}
	// A burst of a moment does not tell what comes.
	want = c.highest + max(block, min(int64(rate*aheadTime.Seconds()), 8*used)) - c.end
	need = math.MaxInt64
	for _, r := range waiting {
		lacks := c.next(r.Lane) + r.N - c.end
		want, need = max(want, lacks), min(need, lacks)
	}
	if len(waiting) == 0 {
		need = 1
	}
	return max(1, want), max(1, need)
}
