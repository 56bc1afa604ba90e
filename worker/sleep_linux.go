package worker

import (
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// exactSleep sleeps on a timer of the kernel that Go's poller watches. A Go timer rounds
// its time up to the next millisecond of epoll_wait, which loses every other tick if a tick
// is one millisecond. A sleep in a system call, unknown to the scheduler, is no better: the
// runtime's monitor checks the thread 50 times a millisecond, which costs more than the
// sleep.
type exactSleep struct {
	mu    sync.Mutex // held during a sleep on the timer
	timer *os.File   // nil before the first sleep; closed by the garbage collector
	raw   syscall.RawConn
}

func (s *exactSleep) sleep(d time.Duration) {
	if d <= 0 {
		return // the timer would never go off
	}
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		if s.onTimer(d) {
			return
		}
	}
	// The timer is in use or not available. This sleep wakes some 100 microseconds late.
	ts := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&ts, &ts) == unix.EINTR {
	}
}

func (s *exactSleep) onTimer(d time.Duration) bool {
	if s.timer == nil {
		fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
		if err != nil {
			return false
		}
		timer := os.NewFile(uintptr(fd), "timerfd")
		raw, err := timer.SyscallConn()
		if err != nil {
			return false
		}
		s.timer, s.raw = timer, raw
	}
	// Neither system call blocks, so both are raw, as in internal/ops/host/rawsocket.
	set := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	var armed, failed bool
	err := s.raw.Read(func(fd uintptr) bool {
		if !armed {
			_, _, e := syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&set)), 0, 0, 0)
			armed, failed = true, e != 0
			return failed
		}
		var count [8]byte
		_, _, e := syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&count)), uintptr(len(count)))
		return e != syscall.EAGAIN
	})
	return err == nil && !failed
}
