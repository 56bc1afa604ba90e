package lineproto

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnsent bounds the bytes that the kernel keeps for a client that does not read. By
// default the kernel keeps up to four megabytes for each connection. Bytes on their way
// to the client are not limited, so a connection over a long distance is not slowed
// down.
const maxUnsent = 64 << 10

func limitUnsent(t *net.TCPConn) {
	if raw, err := t.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
		})
	}
}

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
