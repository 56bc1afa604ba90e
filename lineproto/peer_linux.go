package lineproto

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerState reports whether a client has stopped sending, and whether its connection is
// gone, without reading. For a connection that is not a socket it reports neither.
func peerState(nc net.Conn) (halfClosed, gone bool) {
	c, ok := socket(nc).(syscall.Conn)
	if !ok {
		return false, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false, true // closed
	}
	fds := []unix.PollFd{{Events: unix.POLLRDHUP}}
	err = raw.Control(func(fd uintptr) {
		fds[0].Fd = int32(fd)
		_, _ = unix.Poll(fds, 0) // does not wait: an error leaves no events
	})
	events := fds[0].Revents
	return events&unix.POLLRDHUP != 0, err != nil || events&(unix.POLLHUP|unix.POLLERR) != 0
}
