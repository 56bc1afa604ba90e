package sequence

import "errors"

// ErrPending means that a node has none of the wanted values yet. It fetches some from ZooKeeper.
var ErrPending = errors.New("the positions are being fetched from ZooKeeper")

// Ownership names one ownership of an ordered sequence, or of a section of a family.
type Ownership struct {
	// ID is that of the sequence's record. It is new each time a sequence of this name is created.
	ID string
	// Owner is the nonce of the ownership. Empty: the sequence had no owner, and the node that is asked should become
	// it. Term counts the ownerships up to this one.
	Owner string
	Term  int64
}

// Wait belongs to one request for values, while a server of the line protocol answers it. The zero value is a
// request without a key that has not waited.
type Wait struct {
	// Key is the key of the request, for one value of a strict sequence. Empty means none.
	Key string
	// Passed is the ownership that another node has passed the request on to. Nobody else must answer the request, and
	// it must not be passed on again. nil: a client has sent it.
	Passed *Ownership
	// Owner is the nonce of the ownership that has issued the values of an ordered sequence on this node. The
	// implementation of the sequences sets it.
	Owner string

	// Since is the time at which the request began to wait, in nanoseconds of a monotonic clock. 0 means that it has
	// not waited. Only the implementation of the sequences uses it.
	Since int64
	// Result is the outcome of the request. nil means that it is not known yet. Only the implementation of the
	// sequences uses it.
	Result any
}
