package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/worker"
)

// Client asks nodes for IDs. Make it with New; it is for as many goroutines as
// like to use it.
type Client struct {
	cfg    Config
	access credentials.Client
	calls  sync.Pool // of *call
	stock  *stock    // nil: nothing is asked for ahead

	// start runs f in a goroutine that Close waits for. f's context ends when
	// Close begins, which quit does.
	start func(f func(ctx context.Context))
	quit  context.CancelFunc
	wg    sync.WaitGroup

	mu    sync.Mutex // guards what follows, and what types here say it guards
	nodes []*node
	turn  int // of the nodes, with Spread
	queue []*call
	news  []func() // to be logged, the first is being
	lanes int
	idle  []*lane // those that wait to be woken
	// settling is how many hand out IDs, and will look at the queue next.
	settling int
	stats    Stats
	closed   bool
}

// Stats are what a client has done since New.
type Stats struct {
	// Calls are those of Next and Take that were not answered from what had been
	// asked for ahead.
	Calls int64
	// Requests are those that nodes were asked, or would have been had they been
	// there. Failed is how often that failed, and another node was asked or the
	// same one again.
	Requests, Failed int64
	// IDs are those that nodes answered with.
	IDs int64
}

// New checks cfg. It does no I/O: nodes that are down are no error here.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, access: credentials.Client{TLS: cfg.TLS, Token: cfg.Token}}
	for _, addr := range cfg.Addrs {
		n, err := newNode(addr)
		if err != nil {
			return nil, fmt.Errorf("client: Config.Addrs: %w", err)
		}
		c.nodes = append(c.nodes, n)
	}
	if cfg.Prefetch > 0 {
		c.stock = &stock{size: cfg.Prefetch, maxAge: cfg.MaxAge}
	}
	c.calls.New = func() any { return newCall() }
	ctx, cancel := context.WithCancel(context.Background())
	c.quit = cancel
	c.start = func(f func(context.Context)) { c.wg.Go(func() { f(ctx) }) }
	return c, nil
}

// Next is one new ID. It goes on trying until ctx is done, or Config.Patience
// has passed where ctx has no deadline. It returns sooner when waiting is in
// vain: when the node says that the request is wrong, and when no node may be
// asked again before then. Errors are ErrUnavailable, ErrClosed, ctx's or a
// *ReplyError.
func (c *Client) Next(ctx context.Context) (worker.ID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	id, ok, more := c.ahead()
	if ok {
		return id, nil
	}
	k, err := c.do(ctx, 1, more)
	if err != nil {
		return 0, err
	}
	id = k.one[0]
	c.calls.Put(k)
	return id, nil
}

// TryNext is an ID that was asked for ahead, if one is there (Config.Prefetch).
// It does not wait. Where there is none, Next gets one.
func (c *Client) TryNext() (worker.ID, bool) {
	id, ok, more := c.ahead()
	if !ok && more > 0 {
		c.submit(nil, more)
	}
	return id, ok
}

// ahead takes an ID out of the stock. Where there is none, more are to be asked
// for, if they are not 0.
func (c *Client) ahead() (id worker.ID, ok bool, more int) {
	if c.stock == nil {
		return 0, false, 0
	}
	if id, ok, more = c.stock.take(time.Now()); ok && more > 0 {
		c.submit(nil, more)
	}
	return id, ok, more
}

// Take is n new IDs, 1 to 1,000,000, or an error and none. Those of one node
// grow; more than Config.MaxBatch are asked for in several requests, but of one
// node. It ends as Next does.
func (c *Client) Take(ctx context.Context, n int) ([]worker.ID, error) {
	if n < 1 || n > MaxTake {
		return nil, fmt.Errorf("client: Take of %d: it is for 1 to %d", n, MaxTake)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, err := c.do(ctx, n, 0)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return []worker.ID{k.one[0]}, nil
	}
	return k.ids, nil
}

// do has a call for n IDs answered, and asks for more IDs for the stock in the
// same breath, so that they come in order.
func (c *Client) do(ctx context.Context, n, more int) (*call, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(c.cfg.Patience)
	}
	k := c.calls.Get().(*call)
	k.reset(n, deadline)
	c.submit(k, more)
	select {
	case <-k.done:
		return k, k.err
	case <-ctx.Done():
	}
	if k.state.CompareAndSwap(pending, abandoned) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, &unavailable{ctx.Err(), k.last}
	}
	<-k.done // it came in the same moment
	return k, k.err
}

// submit puts a call into the queue, if there is one, and one for more IDs for
// the stock, if they are not 0, and sees to it that a lane takes them.
func (c *Client) submit(k *call, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		if k != nil {
			k.deliver(nil, ErrClosed)
		}
		return
	}
	if k != nil {
		c.stats.Calls++
		c.queue = append(c.queue, k)
	}
	if more > 0 {
		c.queue = append(c.queue, &call{want: more, deadline: time.Now().Add(c.cfg.Patience), stock: c.stock})
	}
	if c.settling == 0 {
		c.engage()
	}
}

// Stats is a snapshot.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close ends the client's connections and goroutines, and calls that wait with
// ErrClosed. What was asked for ahead is thrown away. It may be called again.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for _, k := range c.queue {
		k.deliver(nil, ErrClosed)
	}
	c.queue = nil
	c.mu.Unlock()
	if c.stock != nil {
		c.stock.close()
	}
	c.quit()
	c.wg.Wait()
}
