package zkstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// reason returns why a connection failed or ended, in words for people. It returns err's own text
// for an error that it does not know.
func reason(err error) string {
	if err == nil {
		return "the session ended"
	}
	at := ""
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		at = " by " + op.Addr.String()
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return fmt.Sprintf("host %s not found", e.Name)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused" + at
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset" + at
	case errors.Is(err, io.EOF):
		return "connection closed by ZooKeeper"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return err.Error()
}
