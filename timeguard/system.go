//go:build !testclock

package timeguard

// System returns the machine's own clocks.
func System() Clock { return newSystemClock() }
