package client

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/dialog"
)

const (
	// benchFirst is how long a node is not asked after its first failure. The time doubles
	// with each further failure, up to benchMost, and varies at random by ±50 %.
	benchFirst = 20 * time.Millisecond
	benchMost  = time.Second
	// benchLong is the time after an error that needs an operator. It also limits the time
	// that a node can ask for: a node whose clock went back by an hour asks for an hour, but
	// may take another worker a second later.
	benchLong = 5 * time.Second
)

// node is one address and its state. All fields but addr, network and address are guarded
// by Client.mu.
type node struct {
	addr             string // as it was given
	network, address string

	// until is when the node may be asked again. The zero Time means that it is healthy.
	until   time.Time
	backoff *backoff.ExponentialBackOff
	last    error // of the last failure
	// slow means that the node is unhealthy because it did not answer a call that had less
	// than Config.Timeout left. The node may be well.
	slow    bool
	probing bool // a probe is under way
}

func newNode(addr string) (*node, error) {
	network, address, err := dialog.SplitAddr(addr)
	if err != nil {
		return nil, err
	}
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = benchFirst, benchMost, 2
	return &node{addr: addr, network: network, address: address, backoff: b}, nil
}

func (n *node) healthy() bool { return n.until.IsZero() }

// before reports whether n should be asked instead of o, which is earlier in the order of
// the addresses.
func (n *node) before(o *node) bool {
	if a, b := n.class(), o.class(); a != b {
		return a < b
	}
	return n.until.Before(o.until)
}

// class returns 0 for a healthy node, 1 for a slow one and 2 for one that failed.
func (n *node) class() int {
	switch {
	case n.healthy():
		return 0
	case n.slow:
		return 1
	}
	return 2
}

// bench makes the node unhealthy, and returns for how long it must not be asked after err.
func (n *node) bench(err error, now time.Time) (d time.Duration) {
	d = n.backoff.NextBackOff()
	var reply *ids.ReplyError
	switch {
	case lasting(err):
		d = benchLong
	case errors.As(err, &reply):
		d = min(max(d, reply.RetryAfter()), benchLong)
	}
	n.until, n.last = now.Add(d), err
	return d
}

// restore makes the node healthy, and reports whether it was unhealthy before.
func (n *node) restore() bool {
	was := !n.healthy()
	n.until, n.last, n.slow = time.Time{}, nil, false
	n.backoff.Reset()
	return was
}

// lasting reports whether the node refuses until an operator acts.
func lasting(err error) bool {
	reply, ok := errors.AsType[*ids.ReplyError](err)
	return ok && replies.ClassOf(reply.Code).Lasts && (reply.Code != ids.EXHAUSTED || reply.Reason() == "")
}
