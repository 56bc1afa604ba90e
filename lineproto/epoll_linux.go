package lineproto

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls that a loop makes for each batch. None of them waits, so
// they are raw: the scheduler has nothing to hear of.

// errno is a raw call's error, 0 for none.
type errno = syscall.Errno

func recvNow(fd int, b []byte) (int, errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// pendingNow tells whether there is something to be read, the end included.
func pendingNow(fd int) bool {
	var b [1]byte
	_, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1, unix.MSG_DONTWAIT|unix.MSG_PEEK, 0, 0)
	return e != syscall.EAGAIN
}

func sendNow(fd int, b []byte) (int, errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// pollNow asks for what is ready and does not wait for it.
func pollNow(epfd int, events []unix.EpollEvent) int {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// pollWait waits until something is ready, or for a signal.
func pollWait(epfd int, events []unix.EpollEvent) int {
	n, err := unix.EpollWait(epfd, events, -1)
	if err != nil {
		return 0
	}
	return n
}
