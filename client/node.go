package client

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/flaked/flaked/internal/credentials"
)

const (
	// How long a node that failed is left alone, the first time and at most.
	benchFirst = 20 * time.Millisecond
	benchMost  = time.Second
	// benchLong is for what a person has to mend. It is also the most that a node
	// can ask for: one whose clock went back by an hour says so, and may have
	// taken another worker a second later.
	benchLong = 5 * time.Second
)

// node is one address and how it does. All but the address is guarded by
// Client.mu.
type node struct {
	addr             string // as it was given
	network, address string

	// until is when it may be asked again, the zero Time while it does well.
	until   time.Time
	backoff *backoff.ExponentialBackOff
	last    error // why it was benched
	// slow is that it was benched as it did not answer in the time that a hurried
	// call had left, which may be no fault of its own.
	slow    bool
	most    int  // that it takes of several calls together, 0 where that is not known to be less than MaxBatch
	probing bool // somebody looks whether it does well again
}

func newNode(addr string) (*node, error) {
	network, address, err := credentials.SplitAddr(addr)
	if err != nil {
		return nil, err
	}
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = benchFirst, benchMost, 2
	return &node{addr: addr, network: network, address: address, backoff: b}, nil
}

func (n *node) healthy() bool { return n.until.IsZero() }

// before tells whether it is rather to be asked than o, which comes before it in
// the order of the addresses.
func (n *node) before(o *node) bool {
	if a, b := n.class(), o.class(); a != b {
		return a < b
	}
	return n.until.Before(o.until)
}

func (n *node) class() int {
	switch {
	case n.healthy():
		return 0
	case n.slow:
		return 1
	}
	return 2
}

// bench takes the node out of use for a while, by what went wrong.
func (n *node) bench(err error, now time.Time) (d time.Duration) {
	d = n.backoff.NextBackOff()
	var reply *ReplyError
	switch {
	case lasting(err):
		d = benchLong
	case errors.As(err, &reply):
		d = min(max(d, reply.RetryAfter()), benchLong)
	}
	n.until, n.last = now.Add(d), err
	return d
}

// restore puts it into use, and tells whether it was out of it.
func (n *node) restore() bool {
	was := !n.healthy()
	n.until, n.last, n.slow = time.Time{}, nil, false
	n.backoff.Reset()
	return was
}

// lasting tells whether a person has to do something about it.
func lasting(err error) bool {
	switch code(err) {
	case "NOAUTH", "EXHAUSTED":
		return true
	}
	return false
}
