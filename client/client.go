package client

import (
	"context"
	"fmt"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/worker"
)

// Client gets IDs from nodes. Make it with New. Any number of goroutines may use it at once.
type Client struct {
	cfg   Config
	ids   *pool
	stock *stock // nil without Config.Prefetch
	// values has the calls for named sequences. A node that refuses sequences may still have IDs, so their
	// connections and what is known of the nodes are apart.
	values *pool
}

// New returns a Client, or an error if cfg is invalid. It does no I/O, so nodes that are
// down cause no error.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c, wanted := &Client{cfg: cfg}, &cluster{Cluster: dialog.Want(cfg.Cluster)}
	if c.ids, err = newPool(cfg, wanted); err != nil {
		return nil, err
	}
	if c.values, err = newPool(cfg, wanted); err != nil {
		return nil, err
	}
	if cfg.Prefetch > 0 {
		c.stock = &stock{size: cfg.Prefetch, maxAge: cfg.MaxAge}
	}
	return c, nil
}

// Next returns one new ID. It retries until ctx is done, or until Config.Patience has passed
// if ctx has no deadline. It fails earlier if a node calls the request wrong (-ERR), if all
// nodes refuse for a reason that needs an operator, or if no node may be asked again before
// the deadline. The error is or wraps ids.ErrUnavailable, ids.ErrClosed, the error of ctx or a
// *ids.ReplyError.
func (c *Client) Next(ctx context.Context) (worker.ID, error) {
	return c.ids.next(ctx, forIDs, c.stock)
}

// TryNext returns a prefetched ID (Config.Prefetch) without waiting. It returns false if there
// is none. Call Next then, which waits for a node.
func (c *Client) TryNext() (worker.ID, bool) {
	if c.stock == nil || c.ids.useless() {
		return 0, false
	}
	id, ok, more := c.stock.take(time.Now())
	if refill := c.ids.refill(forIDs, c.stock, more); refill != nil {
		c.ids.submit(refill)
	}
	return id, ok
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
	k, err := c.ids.fetch(ctx, forIDs, n, nil)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return []worker.ID{k.one[0]}, nil
	}
	return k.numbers, nil
}

// Close ends the client's connections and goroutines, and fails waiting calls with
// ids.ErrClosed. Prefetched IDs are discarded. It may be called more than once.
func (c *Client) Close() {
	c.values.close()
	c.ids.close()
}
