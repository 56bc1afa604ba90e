package client

import (
	"context"
	"errors"
	"os"
	"slices"
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
// by pool.mu.
type node struct {
	addr             string // as it was given
	network, address string

	// until is the time from which the node may be asked again. The zero Time means that the node is healthy.
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

// Functions that change a node's state return what to log. Their callers log it without mu.
func noNews() {}

// markUnhealthy makes a node unhealthy after err, and returns what to log. hurried means
// that the node had less than Config.Timeout to answer. A timeout then makes it slow, not
// failed. markUnhealthy ignores further errors until the node may be asked again, because their
// requests were under way when the first one failed. Only a slow node may still fail.
func (p *pool) markUnhealthy(n *node, err error, hurried bool) (news func()) {
	now := time.Now()
	if n.until.After(now) && (!n.slow || hurried && errors.Is(err, os.ErrDeadlineExceeded)) {
		return noNews
	}
	was := n.healthy()
	d := n.bench(err, now)
	n.slow = hurried && errors.Is(err, os.ErrDeadlineExceeded)
	if !was {
		return noNews
	}
	return func() {
		p.cfg.Logger.Warn("flaked: node marked unhealthy", "address", n.addr, "error", err, "retry_in_ms",
			d.Milliseconds())
	}
}

// markHealthy makes a node healthy, and returns what to log.
func (p *pool) markHealthy(n *node) (news func()) {
	if !n.restore() {
		return noNews
	}
	for _, w := range p.idle { // they may wait for a node
		w.wake()
	}
	return func() { p.cfg.Logger.Info("flaked: node healthy again", "address", n.addr) }
}

// probe starts to ask failed nodes whether they are ready, if another node is healthy.
func (p *pool) probe(now time.Time) {
	if !slices.ContainsFunc(p.nodes, (*node).healthy) {
		return
	}
	for _, n := range p.nodes {
		if n.healthy() || n.probing || n.until.After(now) {
			continue
		}
		n.probing = true
		p.start(func(ctx context.Context) {
			err := p.ready(ctx, n)
			p.probed(n, err)()
		})
	}
}

// probed ends a probe, which found err. It returns what to log.
func (p *pool) probed(n *node, err error) (news func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n.probing = false
	switch {
	case p.closed.Load():
		return noNews
	case err == nil:
		return p.markHealthy(n)
	}
	return p.markUnhealthy(n, err, false)
}

// ready asks a node whether it would answer a GET, on a connection of its own.
func (p *pool) ready(ctx context.Context, n *node) error {
	deadline := time.Now().Add(p.cfg.Timeout)
	conn, err := p.dial(ctx, n, deadline)
	if err != nil {
		return err
	}
	defer conn.close()
	return conn.ready(deadline)
}
