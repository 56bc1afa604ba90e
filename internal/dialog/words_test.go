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
		kind Kind
		want string
	}{
		{"deadline of a connection", op(os.ErrDeadlineExceeded), TimedOut, "no answer from a:1 in time"},
		{"deadline of a context", context.DeadlineExceeded, TimedOut, "no answer from a:1 in time"},
		{"refused", call(syscall.ECONNREFUSED), ConnectionRefused, "connection refused by a:1"},
		{"no socket", call(syscall.ENOENT), SocketNotFound, "socket not found: a:1"},
		{"closed", io.EOF, ConnectionClosed, "connection closed by a:1"},
		{"reset", call(syscall.ECONNRESET), ConnectionClosed, "connection closed by a:1"},
		{"no host", op(&net.DNSError{Err: "no such host", Name: "a", IsNotFound: true}), HostNotFound, "host name not found: a:1"},
		{"no route", call(syscall.EHOSTUNREACH), OtherKind, "a:1: no route to host"},
		{"TLS", errors.New("tls: bad certificate"), OtherKind, "a:1: tls: bad certificate"},
	} {
		if got := InWords("a:1", row.err); got.Error() != row.want || !errors.Is(got, row.err) || KindOf(got) != row.kind {
			t.Errorf("%s: %q of kind %d, want %q of kind %d", row.name, got, KindOf(got), row.want, row.kind)
		}
	}
}
