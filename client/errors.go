package client

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var (
	// ErrClosed is returned by calls that Close interrupted or that came after it.
	ErrClosed = errors.New("client: closed")
	// ErrUnavailable is that no node answered with IDs in time. The error that
	// wraps it wraps the last node's answer too, a *ReplyError or what the network
	// said, and the context's error if that ended the call.
	ErrUnavailable = errors.New("client: no node answered with an ID")
)

// errReply is bytes that are no reply of a flaked node.
var errReply = errors.New("that is no answer of a flaked node")

// ReplyError is an error reply of a node, as the protocol has them.
type ReplyError struct {
	Addr string
	// Code is ERR, NOAUTH, NOTREADY, CLOCK, FENCED, EXHAUSTED, BUSY, or one that a
	// newer node has.
	Code string
	// Text is for people, but for the key=value in it.
	Text string
}

func (e *ReplyError) Error() string {
	return fmt.Sprintf("%s answered -%s %s", e.Addr, e.Code, e.Text)
}

// RetryAfter is how long the node asks to be left alone, 0 if it does not say.
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

// replyError takes an error line apart.
func replyError(addr, line string) *ReplyError {
	code, text, _ := strings.Cut(strings.TrimPrefix(line, "-"), " ")
	return &ReplyError{addr, code, text}
}

// code is that of a node's reply, "" for any other error.
func code(err error) string {
	var reply *ReplyError
	if errors.As(err, &reply) {
		return reply.Code
	}
	return ""
}

// unavailable is ErrUnavailable with its reasons, either of which may be nil.
type unavailable struct{ ended, last error }

func (e *unavailable) Error() string {
	text := ErrUnavailable.Error()
	if e.ended != nil {
		text += ": " + e.ended.Error()
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
