package mode

import (
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/sequence"
)

// Request is a request for values.
type Request struct {
	Wait *sequence.Wait // since when the request waits, and its Result
	N    int64          // the number of values, 0: SEQ, which needs only the record
	// Whole: no other value of the sequence may lie between them.
	Whole bool
	Wake  func() // makes the caller ask again
	Name  []byte // as the client has sent it: the buffer of the caller, valid only until Serve returns
	Lane  int    // in a section of a family
}

// Result is the sequence.Wait.Result of a request that has waited: the values of Block, or an error.
type Result struct {
	Values sequence.Values
	Block  positions.Block
	// Again: an earlier request with the same key got the values, too.
	Again bool
	Err   error
}

// WakeAll wakes requests. No mutex of a sequence is held.
func WakeAll(some []Request) {
	for _, r := range some {
		r.Wake()
	}
}
