package ordered

import (
	"context"
	"errors"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/sequence"
)

// An address is not an identity: another node may listen where the owner did, also one of another cluster. So a request
// that is forwarded names the ownership that must answer it, and the answer names the one that did (O10).

// PeerRequest asks another node for N values of an ordered sequence that follow each other. The ownership that it names
// must issue all of them.
type PeerRequest struct {
	Address   string // of the node that is asked
	Cluster   string // UUID of this node's cluster
	Name      string
	N         int64
	Ownership sequence.Ownership
}

// Answer is the answer to a PeerRequest: the first value, and the nonce of the ownership that has issued the values.
type Answer struct {
	First int64
	Owner string
}

// A Forwarder asks another node. Its error is an *ids.ReplyError if that node refuses the request itself. It wraps
// ErrNothingIssued if that node has certainly issued nothing: it could not be reached, belongs to another cluster, or
// refuses this node. If it refuses this node's token, the error wraps that *ids.ReplyError, too: see RefusesThisNode.
// Any other error leaves open whether the node has issued values.
type Forwarder func(ctx context.Context, request PeerRequest) (Answer, error)

// RefusesThisNode reports whether a node that was asked refuses the token of this one: the reply is not for the client.
func RefusesThisNode(e *ids.ReplyError) bool {
	return e.Code == ids.NOAUTH || e.Code == ids.WRONGPASS || e.Code == ids.NOPERM
}

var (
	errOtherOwner   = errors.New("the answer is of another owner")
	errForeignValue = errors.New("its answer is not a value of this sequence")
)

// acceptsOwner reports whether the ownership with this nonce may have issued the answer: it is the one that was asked.
// If the sequence had no owner, it is any, because the node that was asked has become the owner.
func (r PeerRequest) acceptsOwner(owner string) bool {
	//mutant:o10-any-answer by internal/core/seq:TestAnswerOfAnotherOwnerIsNotUsed -> return true
	return owner != "" && (owner == r.Ownership.Owner || r.Ownership.Owner == "")
}

// isOwnerAsked reports whether this node's ownership is the one that a forwarded request asks. If the sequence had no
// owner when the request was forwarded, any later ownership is.
func (s *Section) isOwnerAsked(asked *sequence.Ownership) bool {
	//mutant:o10-any-owner by internal/core/seq:TestPassedRequestNamesTheOwner -> return true
	return asked.Owner == s.lease.owner || asked.Owner == "" && asked.Term < s.Known.Term
}

// mayTakeFor reports whether this node, which is not the owner, may take the section for a request that another node
// has forwarded: that node knew the same life of the sequence, and no owner.
func (s *Section) mayTakeFor(asked *sequence.Ownership) bool {
	return asked.Owner == "" && asked.ID == s.Known.ID && asked.Term <= s.Known.Term
}

// ErrNothingIssued: another node has certainly issued nothing for a request: see Forwarder.
var ErrNothingIssued = errors.New("it has issued nothing")
