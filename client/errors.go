package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/flaked/flaked/ids"
)

var (
	// ErrClosed is ids.ErrClosed.
	ErrClosed = ids.ErrClosed
	// ErrUnavailable is ids.ErrUnavailable: no node answered with IDs in time.
	ErrUnavailable = ids.ErrUnavailable
)

// errReply means that the bytes received are not a reply of a flaked node.
var errReply = errors.New("reply is not from a flaked node. Check the address")

// ReplyError is ids.ReplyError. Addr is the node's address as in Config.Addrs.
type ReplyError = ids.ReplyError

// reason returns the reason of a *ReplyError, and "" for any other error.
func reason(err error) string {
	if reply, ok := errors.AsType[*ReplyError](err); ok {
		return reply.Reason()
	}
	return ""
}

// networkError is an error of the network in plain words. Unwrap returns Go's own error.
type networkError struct {
	text string
	err  error
}

func (e *networkError) Error() string { return e.text }
func (e *networkError) Unwrap() error { return e.err }

// inWords returns err, which ended an exchange with the node at addr, with a text for people.
// If it does not know err, the text is the address and the innermost error.
func inWords(addr string, err error) error {
	var text string
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		text = fmt.Sprintf("no answer from %s in time", addr)
	case errors.Is(err, syscall.ECONNREFUSED):
		text = "connection refused by " + addr
	case errors.Is(err, fs.ErrNotExist):
		text = "socket not found: " + addr
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		text = "connection closed by " + addr
	case isDNS && dns.IsNotFound:
		text = "host name not found: " + addr
	default:
		inner := err
		if op, ok := errors.AsType[*net.OpError](inner); ok {
			inner = op.Err
		}
		if call, ok := errors.AsType[*os.SyscallError](inner); ok {
			inner = call.Err
		}
		text = fmt.Sprintf("%s: %v", addr, inner)
	}
	return &networkError{text, err}
}

// code returns the code of a *ReplyError, and "" for any other error.
func code(err error) ids.Code {
	if reply, ok := errors.AsType[*ReplyError](err); ok {
		return reply.Code
	}
	return ""
}
