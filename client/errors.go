package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	// ErrClosed is returned by calls that Close interrupted, and by calls after Close.
	ErrClosed = errors.New("client: closed")
	// ErrUnavailable means that no node answered with IDs in time. It is always wrapped,
	// together with the error of the last node: a *ReplyError or an error of the network.
	// If the context ended the call, its error is wrapped too.
	ErrUnavailable = errors.New("client: no node answered with an ID or a value")
)

// errReply means that the bytes received are not a reply of a flaked node.
var errReply = errors.New("reply is not from a flaked node. Check the address")

// ReplyError is an error reply of a node, -CODE text in the line protocol.
type ReplyError struct {
	// Addr is the node's address as in Config.Addrs.
	Addr string
	// Code is ERR, NOAUTH, WRONGPASS, NOTREADY, CLOCK, FENCED, EXHAUSTED, BUSY or NOPERM. A newer node may
	// have other codes.
	Code string
	// Text is for people, except for its key=value fields.
	Text string
}

func (e *ReplyError) Error() string {
	return fmt.Sprintf("%s answered -%s %s", e.Addr, e.Code, e.Text)
}

// RetryAfter returns how long the node asks not to be asked, at most 1 hour. It returns 0 if
// the node does not say.
func (e *ReplyError) RetryAfter() time.Duration {
	for field := range strings.FieldsSeq(e.Text) {
		if text, ok := strings.CutPrefix(field, "retry_after_ms="); ok {
			if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 0 {
				return time.Duration(min(ms, int64(time.Hour/time.Millisecond))) * time.Millisecond
			}
		}
	}
	return 0
}

// Reason returns why a node refuses a value of a named sequence: no-sequence, frozen, exhausted and others, as docs/protocol.md
// lists them. It is empty if the error is not about a sequence.
func (e *ReplyError) Reason() string {
	for field := range strings.FieldsSeq(e.Text) {
		if text, ok := strings.CutPrefix(field, "reason="); ok {
			return text
		}
	}
	return ""
}

// reason returns the reason of a *ReplyError, and "" for any other error.
func reason(err error) string {
	if reply, ok := errors.AsType[*ReplyError](err); ok {
		return reply.Reason()
	}
	return ""
}

// replyError parses an error line.
func replyError(addr, line string) *ReplyError {
	code, text, _ := strings.Cut(strings.TrimPrefix(line, "-"), " ")
	return &ReplyError{addr, code, text}
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
func code(err error) string {
	if reply, ok := errors.AsType[*ReplyError](err); ok {
		return reply.Code
	}
	return ""
}

// unavailable is ErrUnavailable with its reasons: the context's error and the last node's
// error. Either may be nil.
type unavailable struct{ ended, last error }

func (e *unavailable) Error() string {
	text := ErrUnavailable.Error()
	switch {
	case errors.Is(e.ended, context.DeadlineExceeded):
		text += " before the deadline"
	case e.ended != nil:
		text += " before the context was cancelled"
	}
	if e.last != nil {
		text += ": " + e.last.Error()
	}
	return text
}

func (e *unavailable) Unwrap() []error {
	all := []error{ErrUnavailable}
	for _, err := range []error{e.ended, e.last} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}
