package lineproto

import (
	"net"

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
