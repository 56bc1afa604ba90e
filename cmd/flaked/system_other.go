//go:build !unix

package main

import (
	"errors"
	"net"
	"syscall"
)

// A node does not run on this system (localcache.ErrSystem), so nobody sends these signals.
const (
	drainSignal   = syscall.Signal(30)
	releaseSignal = syscall.Signal(31)
)

func bindClosed(string) (*net.UnixListener, error) { return nil, errors.ErrUnsupported }

func openFiles() (uint64, bool) { return 0, false }
