// Package peer asks other nodes of the cluster for values of ordered sequences, over the line protocol. There is one
// connection to each node, and many calls at a time share it: their requests are pipelined.
package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/ops/access"
)

// Caller asks nodes. Make it with New, and end it with Close. Pass may be called by any goroutine at any time.
type Caller struct {
	access func() access.Client
	ctx    context.Context // done once Close was called
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex // guards links
	links map[string]*link
}

// New returns a Caller. access returns the token and the TLS configuration to connect with. It is called for each new
// connection, so they may change.
func New(access func() access.Client) *Caller {
	c := &Caller{access: access, links: make(map[string]*link)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends all connections. Calls that wait fail.
func (c *Caller) Close() {
	c.mu.Lock()
	c.cancel() // from now on no call starts a goroutine
	c.mu.Unlock()
	c.wg.Wait()
}

// retryDial is the time for which a node is not dialled again after an attempt that failed.
const retryDial = 100 * time.Millisecond

// Pass asks a node for values of an ordered sequence. Its error is an *ids.ReplyError if the node refuses the request
// itself. It wraps ordered.ErrNotAsked if the node has certainly counted nothing: it could not be reached, belongs to
// another cluster, or refuses this node. If it refuses the token of this node, the error wraps that *ids.ReplyError,
// too. Any other error leaves open whether the node has counted values.
func (c *Caller) Pass(ctx context.Context, ask ordered.Ask) (got ordered.Answer, err error) {
	k, address := &call{Ask: ask, done: make(chan struct{})}, ask.Address
	l, err := c.submit(k)
	if err != nil {
		return got, err
	}
	select {
	case <-k.done:
		return k.got, k.err
	case <-ctx.Done():
	}
	if l.withdraw(k) {
		return got, notAsked(access.InWords(address, ctx.Err()))
	}
	select {
	case <-k.done: // the reply came first
		return k.got, k.err
	default:
		return got, access.InWords(address, ctx.Err())
	}
}

// submit puts a call into the queue of the connection to a node, which it makes if there is none.
func (c *Caller) submit(k *call) (*link, error) {
	address := k.Address
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, notAsked(ids.ErrClosed)
	}
	if l := c.links[address]; l != nil {
		if taken, err := l.submit(k); taken || err != nil {
			return l, err
		}
	}
	for old, o := range c.links {
		if o.isEnded() {
			delete(c.links, old)
		}
	}
	l := &link{address: address, cluster: k.Cluster, wake: make(chan struct{}, 1)}
	_, _ = l.submit(k) // a new link takes it
	c.links[address] = l
	c.wg.Go(func() { l.run(c.ctx, c.access) })
	return l, nil
}

func notAsked(err error) error {
	e, ok := errors.AsType[*ids.ReplyError](err)
	if ok && e.Code != ids.NOAUTH && e.Code != ids.WRONGPASS && e.Code != ids.NOPERM {
		return fmt.Errorf("%w: %v", ordered.ErrNotAsked, e) // not a refusal of the request, which clients would get
	}
	return fmt.Errorf("%w: %w", ordered.ErrNotAsked, err)
}
