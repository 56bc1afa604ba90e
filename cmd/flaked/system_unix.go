//go:build unix

package main

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// The signals by which `flaked drain` asks a node to drain. After releaseSignal the node also
// releases its worker. No network port accepts this request: only the node's user and root may
// send a signal.
const (
	drainSignal   = syscall.SIGUSR1
	releaseSignal = syscall.SIGUSR2
)

// openFiles returns how many files this process may open, and whether that is known. It is the hard limit, as Go
// programs raise the soft limit to the hard one.
func openFiles() (uint64, bool) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Max), err == nil
}

// bindClosed makes a socket that nobody may connect to yet. Linux gives the file the mode of the
// descriptor. macOS refuses to change that, so the umask decides there. bindClosed does not change the
// umask, because other goroutines create files meanwhile.
func bindClosed(path string) (*net.UnixListener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0) })
	}}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
