// Package peer asks other nodes of the cluster for values of ordered sequences, over the line protocol. There is one
// connection to each node, and many calls at a time share it: their requests are pipelined.
package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
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
	c.cancel() // from now on no call starts a goroutine
	c.mu.Unlock()
	c.wg.Wait()
}

// retryDial is the time for which a node is not dialled again after an attempt that failed.
const retryDial = 100 * time.Millisecond

// Forward is an ordered.Forwarder.
func (c *Caller) Forward(ctx context.Context, ask ordered.Ask) (got ordered.Answer, err error) {
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
		return got, nothingIssued(dialog.InWords(address, ctx.Err()))
	}
	select {
	case <-k.done: // the reply came first
		return k.got, k.err
	default:
		return got, dialog.InWords(address, ctx.Err())
	}
}

// submit puts a call into the queue of the connection to a node, which it makes if there is none.
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

func nothingIssued(err error) error {
	if e, ok := errors.AsType[*ids.ReplyError](err); ok && !ordered.RefusesThisNode(e) {
		return fmt.Errorf("%w: %v", ordered.ErrNothingIssued, e) // not a refusal of the request, which clients would get
	}
	return fmt.Errorf("%w: %w", ordered.ErrNothingIssued, err)
}

const (
	// dialTime is the longest time of a dial with its handshakes.
	dialTime = time.Second
	// A link looks at its progress every tick. If for stallTicks no reply has come that is due, no further requests are
	// sent, so that they are certainly not asked. After endTicks the connection is closed: a node answers within 5 s.
	tick       = 250 * time.Millisecond
	stallTicks = int(time.Second / tick)
	endTicks   = int(6 * time.Second / tick)
	// writeTime is the longest time of one write.
	writeTime = 5 * time.Second
	// maxLine is longer than any line of a reply.
	maxLine = 4 << 10
	// maxWrite is the number of bytes after which a write gets no more requests.
	maxWrite = 64 << 10
)

// idleTicks is the number of ticks after which an unused connection is closed.
var idleTicks = int(time.Minute / tick)

// call is one request.
type call struct {
	ordered.Ask
	// batch is the write that had the request, and at its place in the write.
	batch, at int
	// withdrawn: the caller has left before the request was sent.
	withdrawn, sent bool
	// got and err are the reply. They are written before done is closed, and not changed afterwards.
	got  ordered.Answer
	err  error
	done chan struct{}
}

func (k *call) end(got ordered.Answer, err error) {
	k.got, k.err = got, err
	close(k.done)
}

// appendTo appends the line of the request.
func (k *call) appendTo(out []byte) []byte {
	out = append(append(append(out, "PASS "...), k.Name...), ' ')
	out = append(strconv.AppendInt(out, k.N, 10), ' ')
	out = append(append(out, k.Cluster...), ' ')
	out = append(append(out, k.Of.ID...), ' ')
	out = append(strconv.AppendInt(out, k.Of.Term, 10), ' ')
	return append(append(out, cmp.Or(k.Of.Owner, "-")...), '\n')
}

// link is one connection, with a goroutine that dials and writes, and one that reads.
type link struct {
	address string
	cluster string        // UUID: of another cluster's node nothing is asked
	wake    chan struct{} // capacity 1: there is something to write, or the reader has ended

	mu      sync.Mutex // guards what follows, and the calls
	queue   []*call    // not sent yet
	sent    []*call    // sent and not answered, in the order of the requests
	batch   int        // number of the last write
	stalled bool       // no reply that is due has come for stallTicks, so no further requests are sent
	quiet   int        // ticks without a reply that is due
	unused  int        // ticks without a call
	failed  error      // of the reader
	dead    bool       // the link takes no more calls
	// dialErr is the error of a dial that failed, nil if it succeeded. ended is the time at which the link became dead.
	dialErr error
	ended   time.Time
}

// submit adds a call to the queue. taken is false if the link takes no more calls, and err is not nil if the node could
// not be reached a moment ago.
func (l *link) submit(k *call) (taken bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead && l.dialErr != nil && time.Since(l.ended) < retryDial:
		return false, l.dialErr
	case l.dead:
		return false, nil
	}
	l.queue = append(l.queue, k)
	l.unused = 0
	if len(l.queue) == 1 {
		l.notify()
	}
	return true, nil
}

func (l *link) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// withdraw reports whether the call was not sent. Then it will not be.
func (l *link) withdraw(k *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.withdrawn = !k.sent
	return k.withdrawn
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func (l *link) run(ctx context.Context, creds func() dialog.Client) {
	nc, err := dial(ctx, creds(), l.address, l.cluster)
	if err != nil {
		l.finish(err, nothingIssued(err))
		return
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		err := l.read(dialog.NewReader(nc, l.address, maxLine))
		l.mu.Lock()
		l.failed = err
		l.mu.Unlock()
		l.notify()
	})
	err = l.write(ctx, nc)
	_ = nc.Close()
	reading.Wait()
	l.finish(err, nil)
}

// Try returns nil if the node at address answers, belongs to this cluster, and accepts this node.
func Try(ctx context.Context, creds dialog.Client, address, cluster string) error {
	nc, err := dial(ctx, creds, address, cluster)
	if err == nil {
		err = nc.Close()
	}
	return err
}

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

// write sends what is in the queue, until the connection must end.
func (l *link) write(ctx context.Context, nc net.Conn) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var out []byte
	for {
		select {
		case <-ctx.Done():
			return ids.ErrClosed
		case <-ticker.C:
			if err := l.tick(); err != nil {
				return err
			}
			continue
		case <-l.wake:
			runtime.Gosched() // other callers of this moment share the write
		}
		var err error
		if out, err = l.take(out[:0]); err != nil {
			return err
		}
		if len(out) == 0 {
			continue
		}
		_ = nc.SetWriteDeadline(time.Now().Add(writeTime))
		if n, err := nc.Write(out); err != nil {
			err = dialog.InWords(l.address, err)
			l.unsent(n, err)
			return err
		}
	}
}

// take appends requests from the queue to out, and counts them as sent.
func (l *link) take(out []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil || l.stalled {
		return out, l.failed
	}
	l.batch++
	for i, k := range l.queue {
		if len(out) >= maxWrite {
			l.queue = append(l.queue[:0], l.queue[i:]...)
			l.notify()
			return out, nil
		}
		if k.withdrawn {
			continue
		}
		k.sent, k.batch, k.at = true, l.batch, len(out)
		out = k.appendTo(out)
		l.sent = append(l.sent, k)
	}
	clear(l.queue)
	l.queue = l.queue[:0]
	return out, nil
}

// unsent ends the calls of the last write of which nothing was sent: the write has failed after n bytes.
func (l *link) unsent(n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.sent) - 1; i >= 0; i-- {
		k := l.sent[i]
		if k.batch != l.batch || k.at < n {
			break
		}
		l.sent = l.sent[:i]
		k.end(ordered.Answer{}, nothingIssued(err))
	}
}

// tick counts the time without progress. It returns an error if the connection must end.
func (l *link) tick() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 {
		if l.unused++; l.unused >= idleTicks && len(l.queue) == 0 {
			l.dead = true // before a call comes that would then fail
			return ids.ErrClosed
		}
		return nil
	}
	l.quiet++
	if l.quiet < stallTicks {
		return nil
	}
	l.stalled = true
	err := dialog.InWords(l.address, context.DeadlineExceeded)
	l.endQueue(nothingIssued(err))
	if l.quiet < endTicks {
		return nil
	}
	return err
}

// finish ends the link and its calls. dialErr is nil if there was a connection.
func (l *link) finish(err, dialErr error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.dialErr, l.ended = true, dialErr, time.Now()
	l.endQueue(nothingIssued(err))
	for _, k := range l.sent {
		k.end(ordered.Answer{}, err)
	}
	l.sent = nil
}

// endQueue ends the calls that were not sent. mu is held.
func (l *link) endQueue(err error) {
	for _, k := range l.queue {
		if !k.withdrawn {
			k.end(ordered.Answer{}, err)
		}
	}
	l.queue = nil
}

// read gives the replies to the calls, until the connection ends.
func (l *link) read(in *dialog.Reader) error {
	for {
		line, err := in.Line()
		if err != nil {
			return err
		}
		if err := l.answer(line); err != nil {
			return err
		}
	}
}

// answer gives a line to the call that has waited longest. It returns an error if the line is not its reply.
func (l *link) answer(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 {
		return fmt.Errorf("%s: %.60q: %w", l.address, line, dialog.ErrReply)
	}
	k := l.sent[0]
	got, err := k.parse(l.address, line)
	if errors.Is(err, dialog.ErrReply) {
		return err
	}
	l.sent[0] = nil
	l.sent = l.sent[1:]
	k.end(got, err)
	if l.quiet = 0; l.stalled {
		l.stalled = false
		l.notify()
	}
	return nil
}

// parse returns the answer in a reply, or the error that it is: an *ids.ReplyError if the node refuses the request, and
// an ordered.ErrNothingIssued if it refuses this node or does not understand it.
func (k *call) parse(address string, line []byte) (got ordered.Answer, err error) {
	var buffer [2]int64
	values, owner, ok := dialog.Row(buffer[:0], line, 2)
	if ok && isNonce(owner) {
		if first, wide := values[0], values[1]-values[0]; wide >= k.N-1 && (k.N > 1 || wide == 0) {
			return ordered.Answer{First: first, Ownership: k.nonce(owner)}, nil
		}
	}
	err = dialog.Refusal(address, string(line))
	e, refused := errors.AsType[*ids.ReplyError](err)
	if refused && (ordered.RefusesThisNode(e) || e.Reason() == "" && e.Code != ids.NOTREADY) {
		return got, nothingIssued(e)
	}
	return got, err
}

// isNonce reports whether a reply's last word can be an owner's nonce: visible characters of ASCII.
func isNonce(owner []byte) bool {
	return len(owner) > 0 && !slices.ContainsFunc(owner, func(c byte) bool { return c <= ' ' || c > '~' })
}

// nonce returns the owner that a reply names. Mostly it is the one that was asked.
func (k *call) nonce(owner []byte) string {
	if string(owner) == k.Of.Owner {
		return k.Of.Owner
	}
	return string(owner)
}
