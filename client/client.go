package client

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/worker"
)

// Client gets IDs from nodes. Make it with New. Any number of goroutines may use it at once.
type Client struct {
	cfg    Config
	access dialog.Client
	// cluster is shared with values.
	cluster *cluster
	calls   sync.Pool // of *call
	stock   *stock    // nil without Config.Prefetch
	// values has the calls for named sequences, with connections and a state of the nodes of its own. It has
	// none itself.
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

	closed atomic.Bool // mu is held when it is set
}

// New returns a Client, or an error if cfg is invalid. It does no I/O, so nodes that are
// down cause no error.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	wanted := &cluster{Cluster: dialog.Want(cfg.Cluster)}
	c, err := newClient(cfg, wanted)
	if err != nil {
		return nil, err
	}
	cfg.Prefetch = 0
	c.values, err = newClient(cfg, wanted)
	return c, err
}

func newClient(cfg Config, wanted *cluster) (*Client, error) {
	c := &Client{cfg: cfg, cluster: wanted, access: dialog.Client{TLS: cfg.TLS, Token: cfg.Token}}
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
	return c.one(ctx, forIDs, c.stock)
}

// one returns a number of the stock s, or else a new one. s may be nil.
func (c *Client) one(ctx context.Context, q query, s *stock) (worker.ID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s == nil || c.useless() {
		return c.ask(ctx, q, nil)
	}
	id, ok, more, wait := s.await(time.Now(), false)
	if wait != nil {
		if _, bounded := ctx.Deadline(); !bounded {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.cfg.Patience)
			defer cancel()
		}
	}
	for wait != nil {
		select {
		case <-wait:
			id, ok, more, wait = s.await(time.Now(), true)
		case <-ctx.Done():
			s.leave()
			return 0, ids.Unavailable(ctx.Err(), nil)
		}
	}
	refill := c.refill(q, s, more)
	if !ok {
		return c.ask(ctx, q, refill)
	}
	if refill != nil {
		c.submit(refill)
	}
	return id, nil
}

// ask returns a new number. refill may be nil: see do.
func (c *Client) ask(ctx context.Context, q query, refill *call) (worker.ID, error) {
	k, err := c.do(ctx, q, 1, refill)
	if err != nil {
		return 0, err
	}
	id := k.one[0]
	c.calls.Put(k)
	return id, nil
}

// TryNext returns a prefetched ID (Config.Prefetch) without waiting. It returns false if there
// is none. Call Next then, which waits for a node.
func (c *Client) TryNext() (worker.ID, bool) {
	if c.stock == nil || c.useless() {
		return 0, false
	}
	id, ok, more := c.stock.take(time.Now())
	if refill := c.refill(forIDs, c.stock, more); refill != nil {
		c.submit(refill)
	}
	return id, ok
}

// useless reports whether all calls fail: the client is closed, or its nodes are of two clusters.
func (c *Client) useless() bool { return c.closed.Load() || c.cluster.split.Load() != nil }

// refill returns the call that asks for more numbers for the stock, nil if more is 0. The caller must submit it.
func (c *Client) refill(q query, s *stock, more int) *call {
	if more == 0 {
		return nil
	}
	return &call{query: q, want: more, deadline: time.Now().Add(c.cfg.Patience), stock: s}
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
	k, err := c.do(ctx, forIDs, n, nil)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return []worker.ID{k.one[0]}, nil
	}
	return k.ids, nil
}

// do submits a call for n IDs or values, and waits for its answer. refill may be nil. It is submitted together with the
// call, so that the IDs of the stock come after those of the call. It is submitted also if ctx has just ended, because
// the stock makes no other one before.
func (c *Client) do(ctx context.Context, q query, n int, refill *call) (*call, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(c.cfg.Patience)
	}
	k := c.calls.Get().(*call)
	k.reset(q, n, deadline)
	if refill == nil {
		c.submit(k)
	} else {
		c.submit(k, refill)
	}
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

// submit puts calls into the queue and wakes a connWorker.
func (c *Client) submit(calls ...*call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		for _, k := range calls {
			k.deliver(nil, ids.ErrClosed)
		}
		return
	}
	c.queue = append(c.queue, calls...)
	if c.settling == 0 {
		c.engage()
	}
}

// Close ends the client's connections and goroutines, and fails waiting calls with
// ids.ErrClosed. Prefetched IDs are discarded. It may be
// called more than once.
func (c *Client) Close() {
	if c.values != nil {
		c.values.Close()
	}
	c.mu.Lock()
	c.closed.Store(true)
	for _, k := range c.queue {
		k.deliver(nil, ids.ErrClosed)
	}
	c.queue = nil
	c.mu.Unlock()
	c.quit()
	c.wg.Wait()
}
