package client

import (
	"errors"

	"github.com/flaked/flaked/ids"
)

// reason returns the reason of an *ids.ReplyError, and "" for any other error.
func reason(err error) string {
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		return reply.Reason()
	}
	return ""
}

// code returns the code of an *ids.ReplyError, and "" for any other error.
func code(err error) ids.Code {
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		return reply.Code
	}
	return ""
}

// isRefusal reports whether a node has refused the request.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*ids.ReplyError](err)
	return ok
}
