//go:build !unix

package main

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// A node does not run on this system (localcache.ErrSystem), so nobody sends these signals.
const (
	drainSignal   = syscall.Signal(30)
	releaseSignal = syscall.Signal(31)
)

func tryLock(*os.File) bool { return true }

func bindClosed(string) (net.Listener, error) { return nil, errors.ErrUnsupported }
