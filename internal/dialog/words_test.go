package dialog

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
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
		if got := InWords("a:1", row.err); got.Error() != row.want || !errors.Is(got, row.err) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
