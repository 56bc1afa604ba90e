// Package pulse makes the periodic work of a node fall on the same moments. An idle process is
// then woken once for all of it: waking up costs more than most of that work.
package pulse

import (
	"math/rand/v2"
	"time"
)

// Grid counts moments from its origin. A nil Grid puts no work on common moments.
type Grid struct {
	mono   func() int64
	origin int64
}

// New returns a Grid with a random origin, so that nodes that start together do not work together
// ever after. mono is a monotonic clock in nanoseconds.
func New(mono func() int64) *Grid {
	return &Grid{mono, mono() - rand.Int64N(int64(time.Minute))}
}

// Until returns the time until the next moment that is a multiple of every after the origin: more
// than 0, and every at most. every must be above 0.
func (g *Grid) Until(every time.Duration) time.Duration {
	if g == nil {
		return every
	}
	return every - time.Duration(g.mono()-g.origin)%every
}

// Apart returns the least time between two beginnings of work that happens at these moments, every
// apart: the first may have begun late. For a nil Grid that is every.
func (g *Grid) Apart(every time.Duration) time.Duration {
	if g == nil {
		return every
	}
	return every * 3 / 4
}
