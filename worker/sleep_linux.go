package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// preciseSleep sleeps in the kernel. A Go timer rounds what it waits up to the
// next millisecond of epoll_wait, which at a tick of one millisecond loses
// every other tick; nanosleep is late by some 60 microseconds, the thread's
// timer slack.
func preciseSleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	// An early return (EINTR) is as good: the caller looks at the clock again.
	_ = unix.Nanosleep(&ts, nil)
}
