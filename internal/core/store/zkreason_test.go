package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// A log tells of a lost connection without a word of Go's own.
func TestReasonOfALostConnection(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2181}
	failed := func(op string, err error) error {
		return fmt.Errorf("connect: %w", &net.OpError{Op: op, Net: "tcp", Source: at, Addr: at, Err: err})
	}
	for _, row := range []struct {
		err  error
		want string
	}{
		{failed("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused by 127.0.0.1:2181"},
		{failed("read", os.NewSyscallError("read", syscall.ECONNRESET)), "connection reset by 127.0.0.1:2181"},
		{failed("read", os.ErrDeadlineExceeded), "no answer in time"},
		{fmt.Errorf("get /x: %w", context.DeadlineExceeded), "no answer in time"},
		{io.EOF, "connection closed by ZooKeeper"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "zk9", IsNotFound: true}}, "host zk9 not found"},
		{fmt.Errorf("zk1:2181: %w", &ungreeted{io.EOF}),
			"connection closed by ZooKeeper before its greeting. It has no quorum, or too many connections " +
				"(maxClientCnxns), or is not a ZooKeeper"},
		{fmt.Errorf("zk1:2181: %w", &ungreeted{&strangerError{"why"}}), "what answers there is not a ZooKeeper: why"},
		{errors.New("the session has ended"), "the session has ended"},
		{nil, "the session ended"},
	} {
		if got := reason(row.err); got != row.want {
			t.Errorf("%v: %q, want %q", row.err, got, row.want)
		}
	}
}
