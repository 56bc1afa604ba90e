// Package replies makes the error replies that nodes and their ports share, and has the table of their codes. An
// *ids.ReplyError is an error reply.
package replies

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flaked/flaked/ids"
)

// Refusals of more than one port, or that clients know.
var (
	ErrNoSequences = New(ids.ERR, "reason=no-sequence this node serves no sequences")
	ErrNoLayout    = New(ids.NOTREADY, "starting: the cluster's layout is not known yet")
	ErrNoCluster   = New(ids.NOTREADY, "starting: the node has not joined its cluster yet")
	ErrNoID        = New(ids.ERR, "an ID must be 1 to 9223372036854775807, digits only")
	ErrNeedsTLS    = New(ids.ERR, "this port requires TLS. Connect with TLS")
)

// NoRight returns the error for a sequence that a client's token does not include. It is the same
// whether the sequence exists or not.
func NoRight(name string) *ids.ReplyError {
	return New(ids.NOPERM, "reason=no-right this token may not use sequence "+name)
}

// OtherCluster is the reason of a refusal by a node of another cluster than the wanted one.
const OtherCluster = "other-cluster"

// NotInCluster returns the error of a node of one cluster for a client that wants another one, by its name or its UUID.
func NotInCluster(name, uuid, wanted string) *ids.ReplyError {
	return New(ids.WRONGNODE, fmt.Sprintf("reason=%s cluster=%s cluster_uuid=%s this node does not belong to "+
		"cluster %s. Correct the addresses", OtherCluster, name, uuid, wanted))
}

// New returns an error reply.
func New(code ids.Code, text string) *ids.ReplyError { return &ids.ReplyError{Code: code, Text: text} }

// Of returns the *ids.ReplyError that err is or wraps. Any other error becomes NOTREADY: a client
// then asks another node, which is right for every failure inside this one.
func Of(err error) *ids.ReplyError {
	if e, ok := errors.AsType[*ids.ReplyError](err); ok {
		return e
	}
	return New(ids.NOTREADY, err.Error())
}

// OneLine replaces the line breaks of a text by blanks: an error reply is one line, and so is a reason in a log.
func OneLine(text string) string { return lineBreaks.Replace(text) }

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")
