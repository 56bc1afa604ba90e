package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signalAndWait sends a signal to a process and waits for its end. The error is errStillRuns if
// the process runs longer than timeout. A process that has ended already is no error.
func signalAndWait(ctx context.Context, pid int, signal syscall.Signal, timeout time.Duration) error {
	// Another process may get the number pid. It does not get the descriptor.
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for end := time.Now().Add(timeout); ctx.Err() == nil; {
		left := time.Until(end)
		if left <= 0 {
			return errStillRuns
		}
		const step = 100 * time.Millisecond // ctx is looked at as often
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(min(left, step).Milliseconds())+1)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return ctx.Err()
}
