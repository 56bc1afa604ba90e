package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// ErrConnect means that the first connections could not be opened.
var ErrConnect = errors.New("cannot connect")

// run holds the state that all connections of a load share.
type run struct {
	cfg Config
	// All times are in ns since base, by the monotonic clock.
	base  time.Time
	from  int64        // when measuring begins
	until atomic.Int64 // when it ends
	// interrupt ends the run now. It is called when the context of Run has ended.
	interrupt func()

	mu         sync.Mutex // guards all below
	checker    *checker
	latency    *hdrhistogram.Histogram // 1 ns to an hour, with three significant digits
	replies    int64                   // without errors, from the start of the run
	good       int64                   // likewise, while measured
	errors     map[string]int64
	refused    string // the last refusal of a connection, "" for none
	failed     int64  // the sum of errors
	unanswered int64
}

// interruptedGrace is how long connections wait for replies after an interruption, or Timeout
// if that is less.
const interruptedGrace = time.Second

// Run makes the load until the duration is over or ctx ends, and returns the measurements in
// both cases. It returns an error if the first connections cannot be opened.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.complete()
	r := &run{
		cfg: cfg, from: int64(cfg.Warmup), checker: newChecker(maxPages),
		latency: hdrhistogram.New(1, int64(time.Hour), 3), errors: map[string]int64{},
	}
	r.until.Store(r.from + int64(cfg.Duration))
	conns := make([]*conn, 0, cfg.Conns)
	// One after the other: all at once would overflow the queues of servers.
	for i := range cfg.Conns {
		nc, err := r.dial(ctx)
		if err != nil {
			for _, c := range conns {
				_ = c.net.Close()
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%w: connection %d of %d: %w", ErrConnect, i+1, cfg.Conns, err)
		}
		conns = append(conns, newConn(r, i, nc))
	}

	r.base = time.Now()
	r.interrupt = sync.OnceFunc(func() { r.until.Store(min(r.now(), r.until.Load())) })
	stop := context.AfterFunc(ctx, r.interrupt)
	defer stop()
	var working sync.WaitGroup
	for _, c := range conns {
		working.Go(func() { c.serve(ctx) })
	}
	working.Wait()
	return r.report(), nil
}

func (r *run) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	return r.cfg.Dial(ctx)
}

func (r *run) now() int64 { return int64(time.Since(r.base)) }

func (r *run) over(now int64) bool { return now >= r.until.Load() }

func (r *run) measured(t int64) bool { return t >= r.from && t < r.until.Load() }

// record adds n latencies of requests that were due, or sent, at the time start. r.mu must be held.
func (r *run) record(start, now, n int64) {
	if r.measured(start) {
		_ = r.latency.RecordValues(max(now-start, 1), n)
	}
}

// fail counts n errors. r.mu must be held.
func (r *run) fail(code string, n int64) {
	r.errors[code] += n
	r.failed += n
}
