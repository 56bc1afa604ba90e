package timeguard

import "time"

// Clock reads the machine's clocks, each in nanoseconds. Tests and simulations
// give one of their own.
type Clock interface {
	// Wall is Unix time (CLOCK_REALTIME). It can step either way.
	Wall() int64
	// Mono never steps, counts from anywhere and stands still while the
	// machine is suspended (CLOCK_MONOTONIC).
	Mono() int64
	// Boot is as Mono but goes on during suspend (CLOCK_BOOTTIME). It may cost
	// a system call, where the others cost 20 to 30 ns.
	Boot() int64
}

// System is the machine's own clocks.
func System() Clock { return systemClock{base: time.Now()} }

type systemClock struct{ base time.Time }

func (c systemClock) Wall() int64 { return time.Now().UnixNano() }

// Since reads the monotonic clock alone: half the price of time.Now, which
// reads both.
func (c systemClock) Mono() int64 { return int64(time.Since(c.base)) }
