package peer

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/dialog"
)

// call is one request to a node, and its reply.
type call struct {
	ordered.PeerRequest
	// write is the number of the write that sent the request, and offset the place of the request in that write.
	write, offset int
	// withdrawn: the caller has stopped waiting before the request was sent, so it is not sent any more. sent:
	// link.appendQueued has put it into a write.
	withdrawn, sent bool
	// got and err are the reply. They are written before done is closed, and not changed afterwards.
	got  ordered.Answer
	err  error
	done chan struct{}
}

// end hands the reply to the caller that waits.
func (k *call) end(got ordered.Answer, err error) {
	k.got, k.err = got, err
	close(k.done)
}

// appendTo appends the line of the request.
func (k *call) appendTo(out []byte) []byte {
	out = append(append(append(out, "PASS "...), k.Name...), ' ')
	out = append(strconv.AppendInt(out, k.N, 10), ' ')
	out = append(append(out, k.Cluster...), ' ')
	out = append(append(out, k.Ownership.ID...), ' ')
	out = append(strconv.AppendInt(out, k.Ownership.Term, 10), ' ')
	return append(append(out, cmp.Or(k.Ownership.Owner, "-")...), '\n')
}

// parse returns the answer that a reply has, or the error that the reply is. The error is an *ids.ReplyError if the
// node refuses the request, and wraps ordered.ErrNothingIssued if the node refuses this node or does not know the
// request.
func (k *call) parse(address string, line []byte) (got ordered.Answer, err error) {
	var buffer [2]int64
	values, owner, ok := dialog.Row(buffer[:0], line, 2)
	if ok && isNonce(owner) {
		if first, wide := values[0], values[1]-values[0]; wide >= k.N-1 && (k.N > 1 || wide == 0) {
			return ordered.Answer{First: first, Owner: k.nonce(owner)}, nil
		}
	}
	err = dialog.Refusal(address, string(line))
	e, refused := errors.AsType[*ids.ReplyError](err)
	if refused && (ordered.RefusesThisNode(e) || e.Reason() == "" && e.Code != ids.NOTREADY) {
		return got, nothingIssued(e)
	}
	return got, err
}

// isNonce reports whether a reply's last word can be an owner's nonce: visible characters of ASCII.
func isNonce(owner []byte) bool {
	return len(owner) > 0 && !slices.ContainsFunc(owner, func(c byte) bool { return c <= ' ' || c > '~' })
}

// nonce returns the owner that a reply names. Mostly it is the one that was asked.
func (k *call) nonce(owner []byte) string {
	if string(owner) == k.Ownership.Owner {
		return k.Ownership.Owner
	}
	return string(owner)
}
