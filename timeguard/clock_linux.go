package timeguard

import "golang.org/x/sys/unix"

func (c systemClock) Boot() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return c.Mono() // kernels before 2.6.39: a suspend then counts as a leap
	}
	return ts.Nano()
}
