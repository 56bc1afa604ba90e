package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/go-zookeeper/zk"
)

// zkSentinels maps go-zookeeper's errors to those of Store.
var zkSentinels = []struct{ from, to error }{
	{zk.ErrNoNode, ErrNoNode},
	{zk.ErrNodeExists, ErrExists},
	{zk.ErrBadVersion, ErrBadVersion},
	{zk.ErrNotEmpty, ErrNotEmpty},
	{zk.ErrNoAuth, ErrDenied},
	{zk.ErrAuthFailed, ErrDenied},
	{zk.ErrInvalidACL, ErrDenied}, // "auth" without an accepted identity
	{zk.ErrConnectionClosed, ErrUnreachable},
	{zk.ErrNoServer, ErrUnreachable},
	{zk.ErrSessionExpired, ErrUnreachable},
	{zk.ErrSessionMoved, ErrUnreachable},
	{zk.ErrClosing, ErrUnreachable},
	{zk.ErrShortBuffer, ErrUnreachable}, // a reply that does not parse: outcome unknown
	{io.EOF, ErrUnreachable},
	{io.ErrUnexpectedEOF, ErrUnreachable},
	{net.ErrClosed, ErrUnreachable},
	{os.ErrDeadlineExceeded, ErrUnreachable},
	{context.DeadlineExceeded, ErrUnreachable},
	{context.Canceled, ErrUnreachable},
}

// zkCodes maps the server's error codes that go-zookeeper does not know. The library passes
// them on as a text with a number. After most of them, a write may have been applied or may
// still be applied.
var zkCodes = map[int]struct {
	to   error
	text string
}{
	-1:   {ErrUnreachable, "system error in the server"},
	-4:   {ErrUnreachable, "connection lost"},
	-7:   {ErrUnreachable, "timed out in the server"},
	-12:  {ErrUnreachable, "unknown session"},
	-122: {ErrUnreachable, "timed out in the server"},
	-124: {ErrDenied, "the server requires an authentication that is not supported (SASL?)"},
	-127: {ErrUnreachable, "throttled by the server"},
}

// mapErr turns an error of go-zookeeper into one of Store. It wraps an unknown error
// without any sentinel, so that no caller acts on it.
func mapErr(op, path string, err error) error {
	if err == nil {
		return nil
	}
	for _, s := range zkSentinels {
		if !errors.Is(err, s.from) {
			continue
		}
		if s.to == ErrUnreachable || s.to == ErrDenied {
			return fmt.Errorf("%w: %s %s: %w", s.to, op, path, worded{err})
		}
		return fmt.Errorf("%w: %s %s", s.to, op, path)
	}
	var code int
	if n, _ := fmt.Sscanf(err.Error(), "unknown error: %d", &code); n == 1 {
		if c, ok := zkCodes[code]; ok {
			return fmt.Errorf("%w: %s %s: %s (%d)", c.to, op, path, c.text, code)
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, op, path, worded{err})
	}
	return fmt.Errorf("%s %s: %w", op, path, worded{err})
}
