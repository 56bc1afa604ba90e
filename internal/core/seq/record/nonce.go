package record

import (
	"strings"

	"github.com/flaked/flaked/internal/core/store"
)

// A nonce is new for each write. Those of a node begin with its process, and those of operators do not.
const processEnd = "-"

// NewNonce returns a nonce for a write of this process of a node, "" for one of an operator.
func NewNonce(process string) string {
	if process == "" {
		return store.Nonce()
	}
	return process + processEnd + store.Nonce()
}

// WriterOf returns the process of the node that made the write with this nonce, "" if an operator made it.
func WriterOf(nonce string) string {
	process, _, ok := strings.Cut(nonce, processEnd)
	//mutant:strict-counts-operators by internal/core/seq:TestOperatorIsNoOtherWriter -> if !ok && nonce == "" {
	if !ok {
		return ""
	}
	return process
}

// Newer reports whether r was written after other, as far as their incarnations and write counts show.
func (r Record) Newer(other Record) bool {
	return r.Incarnation > other.Incarnation || r.Incarnation == other.Incarnation && r.WriteCount > other.WriteCount
}

// Rivals reports whether r and other are two writes with one write count. Each write checks the version of the one
// before, so ZooKeeper has lost one of the two, and the other followed the record before that.
func (r Record) Rivals(other Record) bool {
	return r.Incarnation == other.Incarnation && r.WriteCount == other.WriteCount && r.Nonce != other.Nonce
}
