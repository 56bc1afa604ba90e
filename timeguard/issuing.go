package timeguard

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// LeapTolerance bounds how far the wall clock may get ahead of the monotonic clock
	// between two samples. Beyond that the issuing clock does not follow it.
	LeapTolerance = time.Second

	// sampleEvery is how long the issuing clock uses the monotonic clock alone, between two
	// samples. Reading only that clock costs half of reading both. A step of the wall clock
	// is noticed 250 microseconds late at most.
	sampleEvery = 250 * time.Microsecond

	// A sample reads the wall clock between two readings of the monotonic clock. If the
	// process loses the CPU in between, the sample would shift the issuing clock by that
	// time. So a sample wider than sampleWidth is taken again, sampleTries times in all.
	sampleWidth = 10 * time.Microsecond
	sampleTries = 4
)

// IssuingClock is the clock that timestamps come from. It follows the wall clock, also when that
// goes back: the RollbackPolicy says what a request does then. It does not follow a leap
// ahead of more than LeapTolerance. One ID made a year ahead would stop the node for a
// year. Until Confirm accepts the leap, the issuing clock follows the monotonic clock. Time
// spent in suspend is not a leap.
//
// SetCoast lets the issuing clock go on when the wall clock goes back. It then goes a tenth
// slower than time, until the wall clock has caught up.
//
// IssuingClock is safe for concurrent use. Now costs one reading of the monotonic clock.
type IssuingClock struct {
	clock      Clock
	offset     atomic.Int64 // issuing minus monotonic, ns
	sampled    atomic.Int64 // monotonic time of the last sample, ns
	unfollowed atomic.Int64 // wall minus issuing while a leap is not followed, else 0, ns
	coast      atomic.Int64 // the most that issuing may be ahead of wall, ns
	coasting   atomic.Int64 // issuing minus wall when they were last compared, ns

	mu      sync.Mutex // guards taking a sample and suspend
	suspend int64      // Boot minus Mono when they were last compared, ns
}

// NewIssuing returns an issuing clock that starts at the time of the wall clock.
func NewIssuing(clock Clock) *IssuingClock {
	c := &IssuingClock{clock: clock, suspend: clock.Boot() - clock.Mono()}
	mono, wall, _ := c.read()
	c.offset.Store(wall - mono)
	c.sampled.Store(mono)
	return c
}

// Now returns the time of the issuing clock in Unix nanoseconds.
func (c *IssuingClock) Now() int64 {
	mono := c.clock.Mono()
	if mono-c.sampled.Load() >= int64(sampleEvery) {
		c.sample()
		mono = c.clock.Mono()
	}
	return mono + c.offset.Load()
}

// NowMs returns the time of the issuing clock in Unix milliseconds.
func (c *IssuingClock) NowMs() int64 { return c.Now() / int64(time.Millisecond) }

// UnfollowedLeap returns the leap that the issuing clock does not follow: how far the wall clock is
// ahead of it. It returns 0 if there is no such leap.
func (c *IssuingClock) UnfollowedLeap() time.Duration {
	c.Now()
	return time.Duration(c.unfollowed.Load())
}

// coastSlower sets the rate of a clock that coasts. It loses 1/coastSlower of the time that
// passes, so it makes up for one second in ten. Each sample takes its part off, about 25 us
// at once while the clock is read all the time.
const coastSlower = 10

// SetCoast sets how far the issuing clock may be ahead of a wall clock that went back. 0,
// the value of a new clock, means that it goes back with the wall clock.
func (c *IssuingClock) SetCoast(limit time.Duration) { c.coast.Store(int64(limit)) }

// CoastingBy returns how far the issuing clock is ahead of a wall clock that went back, 0 if it
// is not.
func (c *IssuingClock) CoastingBy() time.Duration {
	c.Now()
	return time.Duration(c.coasting.Load())
}

// Confirm makes the issuing clock follow a leap of the given size. It does nothing unless
// the wall clock is still ahead by that size, give or take LeapTolerance.
func (c *IssuingClock) Confirm(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, wall, _ := c.read()
	leap := time.Duration(wall - mono - c.offset.Load())
	if c.unfollowed.Load() != 0 && (leap-ahead).Abs() <= LeapTolerance {
		c.unfollowed.Store(0)
		c.offset.Store(wall - mono)
	}
}

// sample compares the clocks and corrects the offset. It returns at once if another
// goroutine is doing so, and the caller goes on with the present offset.
func (c *IssuingClock) sample() {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	mono, wall, width := c.read()
	defer c.sampled.Store(mono)
	c.coasting.Store(0)
	diff := wall - mono - c.offset.Load()
	if diff > int64(LeapTolerance) {
		diff -= c.followSuspend(diff)
	}
	if diff > int64(LeapTolerance) {
		c.unfollowed.Store(diff)
		return
	}
	c.unfollowed.Store(0)
	// A difference within the width of the sample is noise. Correcting it would only make
	// the clock jitter.
	switch {
	case diff < -width && -diff <= c.coast.Load():
		slower := min(-diff, (mono-c.sampled.Load())/coastSlower)
		c.offset.Add(-slower)
		c.coasting.Store(-diff - slower)
	case diff > width || diff < -width: // beyond the coast limit the clock goes back with the wall clock
		c.offset.Store(wall - mono)
	}
}

// followSuspend moves the issuing clock forward by the part of a leap that was spent in suspend, and returns that part
// in nanoseconds. That time has really passed, whatever else the wall clock did. mu is held.
func (c *IssuingClock) followSuspend(leap int64) int64 {
	suspend := c.clock.Boot() - c.clock.Mono()
	slept := min(suspend-c.suspend, leap) // shorter suspends have been followed already
	c.suspend = suspend
	c.offset.Add(slept)
	return slept
}

// read takes a sample. mono is the later of the two monotonic readings, so that the issuing
// clock errs towards the past. width is the time between the two, in nanoseconds.
func (c *IssuingClock) read() (mono, wall, width int64) {
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
