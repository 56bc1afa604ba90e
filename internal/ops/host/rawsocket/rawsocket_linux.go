// Package rawsocket holds the system calls of event loops over sockets that Go's own
// poller does not watch. All but Wait return at once, so they are raw. Telling Go's
// scheduler of them would cost more than some of the calls.
package rawsocket

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Is reports whether c is a plain TCP or unix socket: not TLS, for instance.
func Is(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// Detach takes the socket of c out of Go's poller, which would wake a thread for input
// that a loop is about to read. It returns a descriptor of the socket, which the caller
// must close, and closes c. Is(c) must be true. If Detach fails, c stays open.
func Detach(c net.Conn) (fd int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return -1, err
	}
	var dupErr error
	err = raw.Control(func(old uintptr) {
		fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		err = dupErr
	}
	if err != nil {
		return -1, err
	}
	c.Close()
	return fd, nil
}

// Recv reads the input that has arrived into b, which must not be empty. It returns 0
// at the end of input, and EAGAIN if there is no input. It does not block.
func Recv(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_DONTWAIT, 0, 0)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// Pending reports whether Recv would return input, the end of input, or an error.
func Pending(fd int) bool {
	var b [1]byte
	_, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1,
		unix.MSG_DONTWAIT|unix.MSG_PEEK, 0, 0)
	return e != syscall.EAGAIN
}

// Send writes as much of b, which must not be empty, as the socket accepts. It returns
// EAGAIN if the socket accepts nothing. It does not block.
func Send(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// Poll stores the events that are ready and returns their number, 0 after an error. It
// does not block.
func Poll(epfd int, events []unix.EpollEvent) int {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// Wait blocks until events are ready, stores them and returns their number. It returns
// 0 after ms milliseconds, a signal or an error. With ms -1 there is no time limit.
func Wait(epfd int, events []unix.EpollEvent, ms int) int {
	n, err := unix.EpollWait(epfd, events, ms)
	if err != nil {
		return 0
	}
	return n
}
