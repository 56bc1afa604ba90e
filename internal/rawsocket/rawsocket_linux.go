// Package rawsocket holds the system calls of event loops over sockets that Go's
// own poller does not watch. None of them waits, so they are raw: the scheduler
// has nothing to hear of, and to tell it costs more than some of the calls.
package rawsocket

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Is tells whether a connection is a socket and no more: TCP or unix, not TLS.
func Is(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// Detach moves the descriptor of a connection, which Is a socket, out of Go's
// poller, which would wake a thread for whatever a loop is about to read. The
// connection is closed if it succeeds.
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

// Recv reads what is there into b, which is not empty. EAGAIN: nothing is.
func Recv(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// Pending tells whether there is something to be read, the end included.
func Pending(fd int) bool {
	var b [1]byte
	_, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1, unix.MSG_DONTWAIT|unix.MSG_PEEK, 0, 0)
	return e != syscall.EAGAIN
}

// Send writes what there is room for of b, which is not empty. EAGAIN: none is.
func Send(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// Poll asks for what is ready and does not wait for it.
func Poll(epfd int, events []unix.EpollEvent) int {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// Wait waits for up to ms milliseconds, -1 for ever, until something is ready, or
// for a signal.
func Wait(epfd int, events []unix.EpollEvent, ms int) int {
	n, err := unix.EpollWait(epfd, events, ms)
	if err != nil {
		return 0
	}
	return n
}
