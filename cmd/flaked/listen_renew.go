package main

import (
	"context"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// unixListener listens on a unix socket. If somebody removes the socket's file, for example a
// cleaner of /tmp, clients can no longer connect. renew then makes the socket again.
type unixListener struct {
	path    string
	options unixOptions

	mu     sync.Mutex // guards the rest
	socket *net.UnixListener
	file   fs.FileInfo // of the socket
	closed bool
}

func newUnixListener(path string, o unixOptions) (net.Listener, error) {
	l := &unixListener{path: path, options: o}
	if err := l.listen(); err != nil {
		return nil, err
	}
	return l, nil
}

// listen makes the socket. The caller must hold mu, or be the only one that knows l.
func (l *unixListener) listen() error {
	socket, err := listenUnix(l.path, l.options)
	if err != nil {
		return err
	}
	file, err := os.Lstat(l.path)
	if err != nil {
		_ = socket.Close()
		return err
	}
	if l.socket != nil {
		_ = l.socket.Close() // Accept goes on with the new one
	}
	socket.SetUnlinkOnClose(false) // the file may be another process's by then: see Close
	l.socket, l.file = socket, file
	return nil
}

func (l *unixListener) current() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket
}

func (l *unixListener) Accept() (net.Conn, error) {
	for {
		socket := l.current()
		conn, err := socket.Accept()
		if err == nil || socket == l.current() { // else renew has replaced it
			return conn, err
		}
	}
}

// Close stops listening, and removes the socket's file unless another one is in its place.
func (l *unixListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && l.isThere() {
		_ = os.Remove(l.path)
	}
	l.closed = true
	return l.socket.Close()
}

func (l *unixListener) Addr() net.Addr { return l.current().Addr() }

// SyscallConn tells package lineproto that the connections are plain sockets.
func (l *unixListener) SyscallConn() (syscall.RawConn, error) { return l.current().SyscallConn() }

// isThere reports whether the socket's file is at its path.
func (l *unixListener) isThere() bool {
	file, err := os.Lstat(l.path)
	return err == nil && os.SameFile(file, l.file)
}

// renew makes the socket again if its file is not there, and reports whether it did.
func (l *unixListener) renew() (renewed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.isThere() {
		return false, nil
	}
	err = l.listen()
	return err == nil, err
}

// watch renews the socket whenever it is missing, until ctx is done.
func (l *unixListener) watch(ctx context.Context, every time.Duration, log hclog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failed := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch renewed, err := l.renew(); {
		case renewed:
			failed = ""
			log.Warn("the unix socket was removed, made it again. If a cleaner of temporary files removes it, "+
				"choose a path in /run", "path", l.path)
		case err == nil:
			failed = ""
		case failed != err.Error():
			failed = err.Error()
			log.Error("the unix socket was removed, and cannot be made again: clients cannot connect to it",
				"path", l.path, "error", bindErrorText("unix:"+l.path, err))
		}
	}
}
