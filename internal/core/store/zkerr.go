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
// them on as a text with a number. With ErrUnreachable, a write may have been applied or may
// still be applied. With ErrRefused or no error, the server has not made the write.
var zkCodes = map[int]struct {
	to   error
	text string
}{
	-1:   {ErrUnreachable, "system error in the server"},
	-2:   {ErrUnreachable, "runtime inconsistency in the server"},
	-3:   {ErrUnreachable, "data inconsistency in the server"},
	-4:   {ErrUnreachable, "connection lost"},
	-5:   {nil, "the server could not read the request"},
	-6:   {nil, "the server does not know this request. Use ZooKeeper 3.5 or later"},
	-7:   {ErrUnreachable, "timed out in the server"},
	-12:  {ErrUnreachable, "unknown session"},
	-13:  {ErrUnreachable, "no quorum for a new configuration"},
	-14:  {ErrUnreachable, "the ensemble is changing its configuration"},
	-113: {nil, "invalid callback"},
	-119: {ErrUnreachable, "the server is read-only, because it has no quorum"},
	-120: {ErrLocalSession, ""},
	-121: {nil, "no such watcher"},
	-122: {ErrUnreachable, "timed out in the server"},
	-124: {ErrDenied, "the server requires an authentication that is not supported (SASL?)"},
	-125: {ErrQuota, ""},
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
		switch c, known := zkCodes[code]; {
		case !known:
		case errors.Is(c.to, ErrRefused):
			return fmt.Errorf("%w (%s %s)", c.to, op, path)
		case c.to == nil:
			return fmt.Errorf("%s %s: %s (%d)", op, path, c.text, code)
		default:
			return fmt.Errorf("%w: %s %s: %s (%d)", c.to, op, path, c.text, code)
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, op, path, worded{err})
	}
	return fmt.Errorf("%s %s: %w", op, path, worded{err})
}
