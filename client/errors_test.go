package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/flaked/flaked/ids"
)

// Errors of the network have texts without Go's internals, and wrap Go's error.
func TestNetworkErrorsAreInPlainWords(t *testing.T) {
	op := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	call := func(errno syscall.Errno) error { return op(os.NewSyscallError("connect", errno)) }
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"deadline of a connection", op(os.ErrDeadlineExceeded), "no answer from a:1 in time"},
		{"deadline of a context", context.DeadlineExceeded, "no answer from a:1 in time"},
		{"refused", call(syscall.ECONNREFUSED), "connection refused by a:1"},
		{"no socket", call(syscall.ENOENT), "socket not found: a:1"},
		{"closed", io.EOF, "connection closed by a:1"},
		{"reset", call(syscall.ECONNRESET), "connection closed by a:1"},
		{"no host", op(&net.DNSError{Err: "no such host", Name: "a", IsNotFound: true}), "host name not found: a:1"},
		{"no route", call(syscall.EHOSTUNREACH), "a:1: no route to host"},
		{"TLS", errors.New("tls: bad certificate"), "a:1: tls: bad certificate"},
	} {
		if got := inWords("a:1", row.err); got.Error() != row.want || !errors.Is(got, row.err) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// A node whose layout is used up refuses everything until somebody acts. A sequence that is used up concerns
// nothing else.
func TestLasting(t *testing.T) {
	for line, want := range map[string]bool{
		"-EXHAUSTED the layout's time field is used up":                  true,
		"-EXHAUSTED reason=exhausted the sequence has reached its max 9": false,
		"-NOAUTH":                            true,
		"-NOTREADY starting reason=starting": false,
	} {
		if err := fmt.Errorf("x: %w", ids.ParseReply("a", line)); lasting(err) != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
}
