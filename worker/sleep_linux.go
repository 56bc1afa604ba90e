package worker

import (
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// exactSleep sleeps on a timer of the kernel that Go's poller watches. A Go
// timer rounds what it waits up to the next millisecond of epoll_wait, which
// at a tick of one millisecond loses every other tick; and who sleeps in the
// kernel, unseen by the scheduler, has the runtime's monitor look 50 times a
// millisecond whether he is back, which costs more than the sleep itself.
type exactSleep struct {
	mu    sync.Mutex // held while somebody sleeps on the timer
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
	// Somebody is on the timer, or there is none to be had: late by some 100
	// microseconds.
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
	// Neither call waits: they are raw, as in internal/rawsocket.
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
