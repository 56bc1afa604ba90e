package timeguard

import "go.uber.org/atomic"

// Coarse reads Elapsed.AtMost at the cost of one quick clock. After the machine stood still, it is late for coarseFor
// at most. By the wall clock it is not late at all, unless the wall clock does not show that either.
//
// Any goroutine may use it.
type Coarse struct {
	elapsed *Elapsed
	clock   func() int64 // of the machine
	last    atomic.Pointer[coarse]
}

// coarse has the readings of both clocks when Coarse last looked, ns.
type coarse struct{ clock, most int64 }

const coarseFor = int64(10_000_000)

// ByMono returns a Coarse that counts on by the monotonic clock, the quickest one.
func (e *Elapsed) ByMono() *Coarse { return newCoarse(e, e.clock.Mono) }

// ByWall returns a Coarse that counts on by the wall clock.
func (e *Elapsed) ByWall() *Coarse { return newCoarse(e, e.clock.Wall) }

func newCoarse(e *Elapsed, clock func() int64) *Coarse {
	c := &Coarse{elapsed: e, clock: clock}
	c.look(clock())
	return c
}

// AtMost returns the clock of that name, in ns.
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
