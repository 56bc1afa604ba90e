package timeguard

import (
	"time"

	"go.uber.org/atomic"
)

// CoarseElapsed reads Elapsed.AtMost at the cost of one quick clock. It reads AtMost itself once in 10 ms (coarseFor),
// and between these readings it counts on by the quick clock.
//
// The quick clock may not show that the machine stood still. Then CoarseElapsed is late, for coarseFor at most.
//
// Any goroutine may use it.
type CoarseElapsed struct {
	elapsed *Elapsed
	clock   func() int64 // the quick one
	last    atomic.Pointer[coarseReading]
}

// coarseReading has the readings of the quick clock and of AtMost when CoarseElapsed last read AtMost, ns.
type coarseReading struct{ clock, most int64 }

const coarseFor = int64(10 * time.Millisecond)

// ByMono returns a CoarseElapsed with the monotonic clock, the quickest one. That clock stands still with the machine.
func (e *Elapsed) ByMono() *CoarseElapsed { return newCoarseElapsed(e, e.clock.Mono) }

// ByWall returns a CoarseElapsed with the wall clock. That clock mostly shows at once that the machine stood still.
func (e *Elapsed) ByWall() *CoarseElapsed { return newCoarseElapsed(e, e.clock.Wall) }

func newCoarseElapsed(e *Elapsed, clock func() int64) *CoarseElapsed {
	c := &CoarseElapsed{elapsed: e, clock: clock}
	c.look(clock())
	return c
}

// AtMost returns the reading of Elapsed.AtMost, in ns, or an earlier one if CoarseElapsed is late.
func (c *CoarseElapsed) AtMost() int64 {
	now, last := c.clock(), c.last.Load()
	passed := now - last.clock
	if passed < 0 || passed >= coarseFor {
		return c.look(now)
	}
	return last.most + passed
}

func (c *CoarseElapsed) look(now int64) int64 {
	most := c.elapsed.AtMost()
	c.last.Store(&coarseReading{now, most})
	return most
}
