package load

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"
)

// Limits of a Config, for callers to check. A pipeline of requests must fit into the buffers of a socket, because a
// connection writes all of it before it reads.
const (
	MaxConns    = 60_000
	MaxPipeline = 1_000
	MaxBatch    = 1_000_000
)

// Config describes a load.
type Config struct {
	// Dial opens a connection that is ready for requests. It is required.
	Dial func(ctx context.Context) (net.Conn, error)

	// Conns is the number of connections. 0 means 1.
	Conns int
	// Pipeline is the most requests that a connection sends before it waits for all their
	// replies. 0 means 1.
	Pipeline int
	// Batch is the number of IDs of a request, GET n. 0 means 1.
	Batch int

	// Rate is the number of requests that are due in a second, over all connections (open loop).
	// 0 means a closed loop: a connection sends again when it has all replies.
	Rate float64
	// Warmup is the time for which the load runs before it is measured. 0 means none.
	Warmup time.Duration
	// Duration is the time for which the load is measured. It is required.
	Duration time.Duration
	// Timeout is the longest wait for a connection, and for a reply. 0 means five seconds.
	Timeout time.Duration
}

// complete replaces zero fields by their defaults. It does not check the others.
func (c Config) complete() Config {
	c.Conns, c.Pipeline, c.Batch = cmp.Or(c.Conns, 1), cmp.Or(c.Pipeline, 1), cmp.Or(c.Batch, 1)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	return c
}

// request returns the bytes of one request.
func (c Config) request() string {
	if c.Batch > 1 {
		return fmt.Sprintf("GET %d\n", c.Batch)
	}
	return "GET\n"
}
