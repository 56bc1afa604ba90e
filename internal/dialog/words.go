package dialog

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

// NetworkError is an error of the network in plain words. Unwrap returns Go's own error.
type NetworkError struct {
	Text string
	Err  error
}

func (e *NetworkError) Error() string { return e.Text }
func (e *NetworkError) Unwrap() error { return e.Err }

// Kind is the kind of event that has ended an exchange with a node.
type Kind int

const (
	OtherKind Kind = iota // TLS, for example
	TimedOut
	ConnectionRefused
	SocketNotFound
	HostNotFound
	ConnectionClosed
)

// KindOf returns the kind of an error of the network, in words or not.
func KindOf(err error) Kind {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectionRefused
	case errors.Is(err, fs.ErrNotExist):
		return SocketNotFound
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ConnectionClosed
	case isDNS && dns.IsNotFound:
		return HostNotFound
	}
	return OtherKind
}

// InWords returns err, which ended an exchange with the node at addr, with a text for people.
// If it does not know err, the text is the address and the innermost error. An ErrReply or an *ids.ReplyError
// is returned as it is.
func InWords(addr string, err error) error {
	if _, refused := errors.AsType[*ids.ReplyError](err); refused || errors.Is(err, ErrReply) {
		return err
	}
	var text string
	switch KindOf(err) {
	case TimedOut:
		text = fmt.Sprintf("no answer from %s in time", addr)
	case ConnectionRefused:
		text = "connection refused by " + addr
	case SocketNotFound:
		text = "socket not found: " + addr
	case ConnectionClosed:
		text = "connection closed by " + addr
	case HostNotFound:
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
	return &NetworkError{text, err}
}
