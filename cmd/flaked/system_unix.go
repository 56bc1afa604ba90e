//go:build unix

package main

import (
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

// bindClosed makes a socket that nobody may connect to yet. The umask is that of the whole
// process, so bindClosed must run before anything else in it creates files.
func bindClosed(path string) (net.Listener, error) {
	defer unix.Umask(unix.Umask(0o777))
	return net.Listen("unix", path)
}
