package timeguard

import (
	"sync"
	"time"

	"go.uber.org/atomic"
)

const (
	// LeapTolerance is how far the wall clock may get ahead of the monotonic
	// one between two looks before it is no longer followed.
	LeapTolerance = time.Second

	// sampleEvery is how long the issuing clock goes by the monotonic clock
	// alone. Reading that one costs half of reading both, and a step of the
	// wall clock is noticed a quarter of a millisecond late at most.
	sampleEvery = 250 * time.Microsecond

	// A sample is two readings of the monotonic clock around one of the wall
	// clock. One that was interrupted in between would shift the clock by the
	// time it was off the CPU, so it is taken again, a few times.
	sampleWidth = 10 * time.Microsecond
	sampleTries = 4
)

// Issuing is the clock that timestamps come from. It follows the wall clock,
// backwards too (what to do then is the RollbackRule's), but not a leap ahead
// of more than LeapTolerance: one ID made a year ahead would refuse service
// for a year. Until Confirm says that the leap is right, the issuing clock
// goes on by the monotonic clock. Time spent in suspend is no leap.
//
// A wall clock that goes back by no more than what SetCoast allows is not
// followed back either: the issuing clock goes on, a tenth slower than time,
// until the wall clock has come up to it.
//
// It is safe for concurrent use; Now costs one reading of the monotonic clock.
type Issuing struct {
	clock   Clock
	offset  atomic.Int64 // issuing minus monotonic, ns
	sampled atomic.Int64 // monotonic time of the last sample, ns
	ahead   atomic.Int64 // wall minus issuing while a leap is not followed, else 0, ns
	coast   atomic.Int64 // the most that issuing may be ahead of wall, ns
	lead    atomic.Int64 // issuing minus wall when they were last compared, ns

	mu      sync.Mutex // guards taking a sample and suspend
	suspend int64      // Boot minus Mono when they were last compared, ns
}

// NewIssuing starts from what the wall clock says.
func NewIssuing(clock Clock) *Issuing {
	c := &Issuing{clock: clock, suspend: clock.Boot() - clock.Mono()}
	mono, wall, _ := c.read()
	c.offset.Store(wall - mono)
	c.sampled.Store(mono)
	return c
}

// Now is the issuing clock in Unix nanoseconds.
func (c *Issuing) Now() int64 {
	mono := c.clock.Mono()
	if mono-c.sampled.Load() >= int64(sampleEvery) {
		c.sample()
		mono = c.clock.Mono()
	}
	return mono + c.offset.Load()
}

// NowMs is the issuing clock in Unix milliseconds.
func (c *Issuing) NowMs() int64 { return c.Now() / int64(time.Millisecond) }

// Ahead is how far the wall clock has leapt ahead of the issuing clock without
// being followed; 0 when it is followed.
func (c *Issuing) Ahead() time.Duration {
	c.Now()
	return time.Duration(c.ahead.Load())
}

// coastSlower is by what part of the time that passes a clock that coasts goes
// slower: fast enough to be done with a second in ten. That is taken off at each
// sample, 25 us at once on a clock that is busy.
const coastSlower = 10

// SetCoast says by how much the issuing clock may be ahead of a wall clock that
// went back; 0, as it begins, is not at all.
func (c *Issuing) SetCoast(limit time.Duration) { c.coast.Store(int64(limit)) }

// Lead is how far the issuing clock is ahead of a wall clock that went back.
func (c *Issuing) Lead() time.Duration {
	c.Now()
	return time.Duration(c.lead.Load())
}

// Confirm follows a leap after all. It does nothing unless the wall clock is
// still ahead by what was confirmed, give or take LeapTolerance.
func (c *Issuing) Confirm(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, wall, _ := c.read()
	leap := time.Duration(wall - mono - c.offset.Load())
	if c.ahead.Load() != 0 && (leap-ahead).Abs() <= LeapTolerance {
		c.ahead.Store(0)
		c.offset.Store(wall - mono)
	}
}

// sample compares the clocks. Whoever finds another at it goes on with what
// there is.
func (c *Issuing) sample() {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	mono, wall, width := c.read()
	defer c.sampled.Store(mono)
	c.lead.Store(0)
	leap := wall - mono - c.offset.Load()
	if leap > int64(LeapTolerance) {
		leap -= c.followSuspend(leap)
	}
	if leap > int64(LeapTolerance) {
		c.ahead.Store(leap)
		return
	}
	c.ahead.Store(0)
	// Within the width of the sample the two agree: moving the clock for less
	// than what was measured would only make it jitter.
	switch {
	case leap < -width && -leap <= c.coast.Load():
		slower := min(-leap, (mono-c.sampled.Load())/coastSlower)
		c.offset.Sub(slower)
		c.lead.Store(-leap - slower)
	case leap > width || leap < -width:
		c.offset.Store(wall - mono)
	}
}

// followSuspend moves the clock on by what a leap has of time spent in suspend, and
// returns that: such time has passed, whatever else the wall clock did. mu is held.
func (c *Issuing) followSuspend(leap int64) int64 {
	suspend := c.clock.Boot() - c.clock.Mono()
	slept := min(suspend-c.suspend, leap) // what was less than a leap has been followed before
	c.suspend = suspend
	c.offset.Add(slept)
	return slept
}

// read takes a sample. The monotonic time is the later of the two around the
// wall clock's, so that the issuing clock errs to the past.
func (c *Issuing) read() (mono, wall, width int64) {
	width = 1<<63 - 1
	for range sampleTries {
		before := c.clock.Mono()
		w := c.clock.Wall()
		after := c.clock.Mono()
		if after-before < width {
			mono, wall, width = after, w, after-before
		}
		if width <= int64(sampleWidth) {
			break
		}
	}
	return mono, wall, width
}
