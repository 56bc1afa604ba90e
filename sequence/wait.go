package sequence

import "errors"

// ErrPending means that a node has none of the wanted positions yet. It fetches some from
// ZooKeeper.
var ErrPending = errors.New("the positions are being fetched from ZooKeeper")

// Wait belongs to one request for values. The zero value is a request that has not waited.
type Wait struct {
	// Since is when the request began to wait, in nanoseconds of a monotonic clock. 0: it has
	// not waited.
	Since int64
	// Key is the key of the request, for one value of a strict sequence. "": it has none.
	Key string
	// Answer is what package seqstore has decided about the request. nil: nothing yet.
	Answer any
}
