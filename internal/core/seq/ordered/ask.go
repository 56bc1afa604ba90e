package ordered

import (
	"context"
	"errors"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/sequence"
)

// An address is not an identity: another node may listen where the owner did, also one of another cluster. So a request
// that is forwarded names the ownership that must answer it, and the answer the one that did (O10).

// Ask is a request for N values of an ordered sequence that follow each other, which one ownership must answer.
type Ask struct {
	Address string // of the node
	Cluster string // UUID
	Name    string
	N       int64
	Of      sequence.Ownership
}

// Answer is the first value, and the nonce of the ownership that has issued it.
type Answer struct {
	First     int64
	Ownership string
}

// A Forwarder asks another node. Its error is an *ids.ReplyError if that node refuses the request itself. It wraps
// ErrNothingIssued if that node has certainly issued nothing: it could not be reached, belongs to another cluster, or
// refuses this node. If it refuses this node's token, the error wraps that *ids.ReplyError, too: see RefusesThisNode.
// Any other error leaves open whether the node has issued values.
type Forwarder func(ctx context.Context, ask Ask) (Answer, error)

// RefusesThisNode reports whether a node that was asked refuses the token of this one: the reply is not for the client.
func RefusesThisNode(e *ids.ReplyError) bool {
	return e.Code == ids.NOAUTH || e.Code == ids.WRONGPASS || e.Code == ids.NOPERM
}

var (
	errOtherOwner = errors.New("the answer is of another owner")
	errOtherMap   = errors.New("its answer is not a value of this sequence")
)

// answeredBy reports whether an answer is of the ownership that was asked. A node that was to become the owner has an
// ownership that nobody knew before.
func (a Ask) answeredBy(ownership string) bool {
	//mutant:o10-any-answer by internal/core/seq:TestAnswerOfAnotherOwnerIsNotUsed -> return true
	return ownership != "" && (ownership == a.Of.Owner || a.Of.Owner == "")
}

// isAskedFor reports whether this node's ownership is the one that a request was forwarded to. If the sequence had no
// owner, it is any later one.
func (s *Section) isAskedFor(of *sequence.Ownership) bool {
	//mutant:o10-any-owner by internal/core/seq:TestPassedRequestNamesTheOwner -> return true
	return of.Owner == s.lease.ownership || of.Owner == "" && of.Term < s.Known.Term
}

// mayBecome reports whether this node, which owns nothing, may become the owner for a request that was forwarded.
func (s *Section) mayBecome(of *sequence.Ownership) bool {
	return of.Owner == "" && of.ID == s.Known.ID && of.Term <= s.Known.Term
}

// ErrNothingIssued: another node has certainly issued nothing for a request: see Forwarder.
var ErrNothingIssued = errors.New("it has issued nothing")
