package lineproto

import (
	"net"

	"golang.org/x/sys/unix"
)

// maxUnsent is how much of what a client does not read the kernel keeps for
// it. By itself it keeps up to four megabytes, for each of 10,000 connections.
// What is on its way to the client is not limited, so a long line is still full.
const maxUnsent = 64 << 10

func limitUnsent(t *net.TCPConn) {
	if raw, err := t.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
		})
	}
}
