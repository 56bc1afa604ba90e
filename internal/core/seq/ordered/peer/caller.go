// Package peer asks other nodes of the cluster for values of ordered sequences, over the line protocol. There is one
// connection to each node, and many calls at a time share it: their requests are pipelined.
//
// The invariant: an error wraps ordered.ErrNothingIssued only if the request was not sent, or the reply shows that
// nothing was issued. After any other error, the node may have issued values.
//
// Three types to read:
//
//   - Caller asks nodes, and has a link to each.
//   - link is one connection, with the calls that wait to be sent or answered.
//   - call is one request, and its reply.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/dialog"
)

// Caller asks nodes. Make it with New, and end it with Close. Forward may be called by any goroutine at any time.
type Caller struct {
	creds  func() dialog.Client // the token and the TLS configuration: see New
	ctx    context.Context      // done once Close was called
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex // guards links
	links map[string]*link
}

// New returns a Caller. creds returns the token and the TLS configuration to connect with. It is called for each new
// connection, so they may change.
func New(creds func() dialog.Client) *Caller {
	c := &Caller{creds: creds, links: make(map[string]*link)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends all connections. Calls that wait fail.
func (c *Caller) Close() {
	c.mu.Lock()
	c.cancel() // no call starts a goroutine after that
	c.mu.Unlock()
	c.wg.Wait()
}

// Forward is an ordered.Forwarder.
func (c *Caller) Forward(ctx context.Context, ask ordered.PeerRequest) (got ordered.Answer, err error) {
	k, address := &call{PeerRequest: ask, done: make(chan struct{})}, ask.Address
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
		return got, nothingIssued(dialog.InWords(address, ctx.Err()))
	}
	select {
	case <-k.done: // the reply came first
		return k.got, k.err
	default:
		return got, dialog.InWords(address, ctx.Err())
	}
}

// submit puts a call into the queue of the connection to a node, which it makes if there is none. Then submit also
// removes the connections that have ended.
func (c *Caller) submit(k *call) (*link, error) {
	address := k.Address
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, nothingIssued(ids.ErrClosed)
	}
	if l := c.links[address]; l != nil {
		if taken, err := l.submit(k); taken || err != nil {
			return l, err
		}
	}
	for old, o := range c.links {
		if o.isDead() {
			delete(c.links, old)
		}
	}
	l := &link{address: address, cluster: k.Cluster, wake: make(chan struct{}, 1)}
	_, _ = l.submit(k) // a new link takes it
	c.links[address] = l
	c.wg.Go(func() { l.run(c.ctx, c.creds) })
	return l, nil
}

// Check returns nil if the node at address answers, belongs to this cluster, and accepts this node.
func Check(ctx context.Context, creds dialog.Client, address, cluster string) error {
	nc, err := dial(ctx, creds, address, cluster)
	if err == nil {
		err = nc.Close()
	}
	return err
}

// dialTime is the longest time of a dial with its handshakes.
const dialTime = time.Second

// dial returns a connection to a node that has said that it belongs to this cluster. So it is not one that is full,
// that stands still, or that does not accept this node.
func dial(ctx context.Context, creds dialog.Client, address, cluster string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	//mutant:o10-any-peer by TestNodeOfAnotherClusterIsNotAsked -> creds.Cluster = dialog.Want("")
	creds.Cluster = dialog.Want(cluster)
	nc, err := creds.Dial(ctx, address)
	if err != nil {
		return nil, dialog.InWords(address, err)
	}
	return nc, nil
}

// nothingIssued returns an error that wraps ordered.ErrNothingIssued: err says why.
func nothingIssued(err error) error {
	if e, ok := errors.AsType[*ids.ReplyError](err); ok && !ordered.RefusesThisNode(e) {
		// Only the text: if the error wrapped the *ids.ReplyError, clients would get that as the reply to their
		// request.
		return fmt.Errorf("%w: %v", ordered.ErrNothingIssued, e)
	}
	return fmt.Errorf("%w: %w", ordered.ErrNothingIssued, err)
}
