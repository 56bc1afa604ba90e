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

// bindClosed makes a socket that nobody may connect to yet. The umask is that of the whole
// process, so bindClosed must run before anything else in it creates files.
func bindClosed(path string) (net.Listener, error) {
	defer unix.Umask(unix.Umask(0o777))
	return net.Listen("unix", path)
}
