package ids

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// ReplyError is an error reply of a node, -CODE text in the line protocol. docs/protocol.md
// lists the codes.
type ReplyError struct {
	// Addr is the address of the node, "" for a node inside the program.
	Addr string
	// Code is one of the constants of this package. A newer node may have other codes.
	Code Code
	// Text is for people, except for its key=value fields. Line breaks in it are sent as blanks.
	Text string
}

// Line returns the reply as it is sent, without its line ending.
func (e *ReplyError) Line() string {
	if e.Text == "" {
		return "-" + string(e.Code)
	}
	return "-" + string(e.Code) + " " + e.Text
}

// Error returns Line behind the address of the node.
func (e *ReplyError) Error() string {
	if e.Addr == "" {
		return e.Line()
	}
	return e.Addr + " answered " + e.Line()
}

// RetryAfter returns how long the node asks not to be asked, at most 1 hour. It returns 0 if
// the node does not say.
func (e *ReplyError) RetryAfter() time.Duration {
	ms, err := strconv.ParseInt(e.field("retry_after_ms="), 10, 64)
	if err != nil || ms < 0 {
		return 0
	}
	return time.Duration(min(ms, int64(time.Hour/time.Millisecond))) * time.Millisecond
}

// Reason returns the word of the field reason=, such as no-sequence, frozen or exhausted. It is
// empty if the node gives none.
func (e *ReplyError) Reason() string { return e.field("reason=") }

// field returns the text after name, which ends with "=", or "".
func (e *ReplyError) field(name string) string {
	for field := range strings.FieldsSeq(e.Text) {
		if text, ok := strings.CutPrefix(field, name); ok {
			return text
		}
	}
	return ""
}

// unavailable is ErrUnavailable with its reasons. Either may be nil.
type unavailable struct{ ended, last error }

// Unavailable returns an error that wraps ErrUnavailable, the error of the context that ended
// the call, and the last error of a node. Either may be nil. It is for implementations of
// Source, and for tests that let one fail.
func Unavailable(ended, last error) error { return &unavailable{ended, last} }

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
