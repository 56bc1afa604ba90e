package client

import (
	"errors"

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

// code returns the code of a *ReplyError, and "" for any other error.
func code(err error) ids.Code {
	if reply, ok := errors.AsType[*ReplyError](err); ok {
		return reply.Code
	}
	return ""
}
