//go:build linux

// Command floor answers every line with the same 20 bytes, from one epoll loop, and does
// nothing else. It shows the best that a server in Go can reach. epoll.c is its counterpart
// in C.
package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/rawsocket"
)

const (
	line     = "2123840256405929993\n"
	maxLines = 16384
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: floor HOST:PORT | unix:PATH")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "floor:", serve(os.Args[1]))
	os.Exit(1)
}

// serve listens on where and serves. It returns only with an error.
func serve(where string) error {
	listener, err := listen(where)
	if err != nil {
		return err
	}
	loop, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err := watch(loop, listener); err != nil {
		return err
	}
	events := make([]unix.EpollEvent, 512)
	in, out := make([]byte, 64<<10), bytes.Repeat([]byte(line), maxLines)
	for {
		// Poll makes a raw system call, which Go's scheduler does not notice. That saves
		// 5 % if the call returns at once.
		n := rawsocket.Poll(loop, events)
		if n == 0 {
			n = rawsocket.Wait(loop, events, -1)
		}
		for _, e := range events[:n] {
			switch fd := int(e.Fd); {
			case fd == listener:
				accept(loop, listener)
			case !answer(fd, in, out):
				_ = unix.Close(fd)
			}
		}
	}
}

// listen returns a listening socket that Go's network poller does not watch: a duplicate of
// the socket from net.Listen.
func listen(where string) (int, error) {
	network, address := "tcp", where
	if path, ok := strings.CutPrefix(where, "unix:"); ok {
		network, address = "unix", path
		_ = os.Remove(path)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return -1, err
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	defer l.Close()
	raw, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	if controlErr := raw.Control(func(s uintptr) { fd, err = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) }); controlErr != nil {
		return -1, controlErr
	}
	return fd, err
}

func watch(loop, fd int) error {
	return unix.EpollCtl(loop, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

func accept(loop, listener int) {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // unix sockets refuse it
		if watch(loop, fd) != nil {
			_ = unix.Close(fd)
		}
	}
}

// answer reads once and answers all lines that it got. It returns false if the connection
// must be closed. A client that does not read is disconnected, because the floor buffers no
// output.
func answer(fd int, in, out []byte) bool {
	n, errno := rawsocket.Recv(fd, in)
	if errno != 0 || n == 0 {
		return errno == unix.EAGAIN
	}
	for lines := bytes.Count(in[:n], []byte{'\n'}); lines > 0; {
		now := min(lines, maxLines)
		b := out[:now*len(line)]
		if sent, errno := rawsocket.Send(fd, b); errno != 0 || sent != len(b) {
			return false
		}
		lines -= now
	}
	return true
}
