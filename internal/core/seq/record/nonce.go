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
