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
	// Passed: another node has passed the request on, which must not be passed on again.
	Passed bool
	// Result is how the request ends. nil: that is not known yet.
	Result *Result
}

// Result is what a request that has waited gets: the values of Block, or an error.
type Result struct {
	Values Values
	Block  Block
	// Again: an earlier request with the same key got the values, too.
	Again bool
	Err   error
}
