package client

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/worker"
)

// Client gets IDs from nodes. Make it with New. Any number of goroutines may use it at once.
type Client struct {
	cfg    Config
	access access.Client
	calls  sync.Pool // of *call
	stock  *stock    // nil without Config.Prefetch
	// values has the calls for named sequences, with connections and a state of the nodes of its own. It is nil before
	// the first one, and guarded by mu.
	values *Client

	// start runs f in a goroutine that Close waits for. Close calls quit, which ends f's
	// context.
	start func(f func(ctx context.Context))
	quit  context.CancelFunc
	wg    sync.WaitGroup

	// mu guards the fields below, and fields of other types whose comments say so.
	mu          sync.Mutex
	nodes       []*node
	owners      owners
	turn        int // next node, with Spread
	queue       []*call
	connWorkers int
	stuck       int           // connWorkers that do not count: see markStuck
	idle        []*connWorker // those that wait to be woken
	// settling counts the connWorkers that are delivering IDs. Each looks at the queue next, so
	// a new call need not wake another connWorker.
	settling int
	closed   bool

	// ended is true after closed, for callers that do not hold mu.
	ended atomic.Bool
}

// New returns a Client, or an error if cfg is invalid. It does no I/O, so nodes that are
// down cause no error.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, access: access.Client{TLS: cfg.TLS, Token: cfg.Token}}
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

// Next returns one new ID. It retries until ctx is done, or until Config.Patience has passed
// if ctx has no deadline. It fails earlier if a node calls the request wrong (-ERR), if all
// nodes refuse for a reason that needs an operator, or if no node may be asked again before
// the deadline. The error is or wraps ids.ErrUnavailable, ids.ErrClosed, the error of ctx or a
// *ids.ReplyError.
func (c *Client) Next(ctx context.Context) (worker.ID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	id, ok, more := c.ahead()
	if ok {
		return id, nil
	}
	k, err := c.do(ctx, forIDs, 1, more, c.stock)
	if err != nil {
		return 0, err
	}
	id = k.one[0]
	c.calls.Put(k)
	return id, nil
}

// TryNext returns a prefetched ID (Config.Prefetch) without waiting. It returns false if there
// is none. Call Next then, which waits for a node.
func (c *Client) TryNext() (worker.ID, bool) {
	id, ok, more := c.ahead()
	if !ok && more > 0 {
		c.submit(nil, c.stock.call(forIDs, more, c.cfg.Patience))
	}
	return id, ok
}

// ahead takes an ID out of the stock. If ok is false and more is not 0, the caller must
// submit a request for that many more IDs for the stock.
func (c *Client) ahead() (id worker.ID, ok bool, more int) {
	if c.stock == nil {
		return 0, false, 0
	}
	if id, ok, more = c.stock.take(time.Now()); ok && more > 0 {
		c.submit(nil, c.stock.call(forIDs, more, c.cfg.Patience))
	}
	return id, ok, more
}

// Take returns n new IDs, or an error and no IDs. n is 1 to 1,000,000. All IDs come from one
// node, in increasing order while the node keeps its worker. More than Config.MaxBatch IDs
// take several requests. Take retries and fails as Next does.
func (c *Client) Take(ctx context.Context, n int) ([]worker.ID, error) {
	if n < 1 || n > ids.MaxTake {
		return nil, fmt.Errorf("client: Take(%d): n must be 1 to %d", n, ids.MaxTake)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, err := c.do(ctx, forIDs, n, 0, nil)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return []worker.ID{k.one[0]}, nil
	}
	return k.ids, nil
}

// do submits a call for n IDs or values, and waits for its answer. If more is not 0, it submits a call
// for the stock s together with it, so that the IDs of the stock come after those of the call.
func (c *Client) do(ctx context.Context, q query, n, more int, s *stock) (*call, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(c.cfg.Patience)
	}
	k := c.calls.Get().(*call)
	k.reset(q, n, deadline)
	var ahead *call
	if more > 0 {
		ahead = s.call(q, more, c.cfg.Patience)
	}
	c.submit(k, ahead)
	var late <-chan time.Time
	if !ok {
		late = k.alarm(c.cfg.Patience)
		defer k.timer.Stop()
	}
	select {
	case <-k.done:
		return k, k.err
	case <-ctx.Done():
	case <-late:
	}
	if k.state.CompareAndSwap(pending, abandoned) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, ids.Unavailable(cmp.Or(ctx.Err(), context.DeadlineExceeded), k.last)
	}
	<-k.done // the answer came first
	return k, k.err
}

// submit puts calls into the queue and wakes a connWorker: k, and the call ahead for a stock. Either may be nil.
func (c *Client) submit(k, ahead *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		if k != nil {
			k.deliver(nil, ids.ErrClosed)
		}
		return
	}
	if k != nil {
		c.queue = append(c.queue, k)
	}
	if ahead != nil {
		c.queue = append(c.queue, ahead)
	}
	if c.settling == 0 {
		c.engage()
	}
}

// Close ends the client's connections and goroutines, and fails waiting calls with
// ids.ErrClosed. Prefetched IDs are discarded. It may be
// called more than once.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.ended.Store(true)
	for _, k := range c.queue {
		k.deliver(nil, ids.ErrClosed)
	}
	c.queue = nil
	values := c.values
	c.mu.Unlock()
	if values != nil {
		values.Close()
	}
	if c.stock != nil {
		c.stock.close()
	}
	c.quit()
	c.wg.Wait()
}
