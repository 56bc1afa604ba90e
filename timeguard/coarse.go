package timeguard

import (
	"time"

	"go.uber.org/atomic"
)

// Coarse reads Elapsed.AtMost at the cost of one quick clock. It reads AtMost itself once in 10 ms (coarseFor), and
// between these readings it counts on by the quick clock.
//
// The quick clock may not show that the machine stood still. Then Coarse is late, for coarseFor at most.
//
// Any goroutine may use it.
type Coarse struct {
	elapsed *Elapsed
	clock   func() int64 // the quick one
	last    atomic.Pointer[coarse]
}

// coarse has the readings of the quick clock and of AtMost when Coarse last read AtMost, ns.
type coarse struct{ clock, most int64 }

const coarseFor = int64(10 * time.Millisecond)

// ByMono returns a Coarse with the monotonic clock, the quickest one. That clock stands still with the machine.
func (e *Elapsed) ByMono() *Coarse { return newCoarse(e, e.clock.Mono) }

// ByWall returns a Coarse with the wall clock. That clock mostly shows at once that the machine stood still.
func (e *Elapsed) ByWall() *Coarse { return newCoarse(e, e.clock.Wall) }

func newCoarse(e *Elapsed, clock func() int64) *Coarse {
	c := &Coarse{elapsed: e, clock: clock}
	c.look(clock())
	return c
}

// AtMost returns the reading of Elapsed.AtMost, in ns, or an earlier one if Coarse is late.
func (c *Coarse) AtMost() int64 {
	now, last := c.clock(), c.last.Load()
	passed := now - last.clock
	if passed < 0 || passed >= coarseFor {
		return c.look(now)
	}
	return last.most + passed
}

func (c *Coarse) look(now int64) int64 {
	most := c.elapsed.AtMost()
	c.last.Store(&coarse{now, most})
	return most
}
