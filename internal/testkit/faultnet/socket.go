package faultnet

import (
	"errors"
	"syscall"
)

// LeaveSocket leaves a Unix socket at path on which nobody listens, as a process that was killed does. The socket never
// listens: a child process that another test starts may have a copy of a descriptor for a moment, and would listen on.
func LeaveSocket(path string) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd))
}
