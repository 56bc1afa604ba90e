package sequence

import "errors"

// ErrPending means that a node has none of the wanted values yet. It fetches some from ZooKeeper.
var ErrPending = errors.New("the positions are being fetched from ZooKeeper")

// Wait belongs to one request for values, while a server of the line protocol answers it. The zero value is a
// request without a key that has not waited.
type Wait struct {
	// Key is the key of the request, for one value of a strict sequence. Empty means none.
	Key string
	// Passed means that another node has passed the request on. It must not be passed on again.
	Passed bool

	// Since is when the request began to wait, in nanoseconds of a monotonic clock. 0 means
	// that it has not waited. Only the implementation of the sequences uses it.
	Since int64
	// Result is how the request ends. nil means that this is not known yet. Only the
	// implementation of the sequences uses it.
	Result any
}
