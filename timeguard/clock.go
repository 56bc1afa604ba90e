package timeguard

import "time"

// Clock reads the machine's clocks, each in nanoseconds. Tests and simulations use a Clock
// of their own.
type Clock interface {
	// Wall returns Unix time (CLOCK_REALTIME). It can step in either direction.
	Wall() int64
	// Mono returns a time that never steps, counts from an arbitrary point and stands still
	// while the machine is suspended (CLOCK_MONOTONIC).
	Mono() int64
	// Boot is like Mono but also counts the time in suspend (CLOCK_BOOTTIME). It may cost a
	// system call, while the others cost 20 to 30 ns.
	Boot() int64
}

// newSystemClock returns the machine's clocks, with Mono counted from now.
func newSystemClock() systemClock { return systemClock{base: time.Now()} }

type systemClock struct{ base time.Time }

func (c systemClock) Wall() int64 { return time.Now().UnixNano() }

// Mono uses time.Since, which reads the monotonic clock alone. time.Now reads both clocks
// and costs twice as much.
func (c systemClock) Mono() int64 { return int64(time.Since(c.base)) }
