package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// listenUnix listens on a unix socket, for its owner and group. A node that was
// killed leaves its socket in the file system, where nobody answers and nobody
// else can listen: it is replaced.
func listenUnix(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(path) && os.Remove(path) == nil {
		l, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, err
	}
	// Until here it is for those whom the umask lets in, which are mostly fewer.
	if err := os.Chmod(path, 0o660); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// isAbandoned tells whether there is a socket that nobody listens on. Anything
// else by that name is left alone.
func isAbandoned(path string) bool {
	if fi, err := os.Lstat(path); err != nil || fi.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
