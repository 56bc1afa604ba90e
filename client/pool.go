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

// pool has the calls that wait, the connWorkers that get their answers, and what is known of the nodes.
type pool struct {
	cfg     Config
	access  dialog.Client
	cluster *cluster  // the pools of a Client share it
	spare   sync.Pool // of *call: those that were answered

	// start runs f in a goroutine that close waits for. close calls quit, which ends f's
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

func newPool(cfg Config, wanted *cluster) (*pool, error) {
	p := &pool{cfg: cfg, cluster: wanted, access: dialog.Client{TLS: cfg.TLS, Token: cfg.Token}}
	for _, addr := range cfg.Addrs {
		n, err := newNode(addr)
		if err != nil {
			return nil, fmt.Errorf("client: Config.Addrs: %w", err)
		}
		p.nodes = append(p.nodes, n)
	}
	p.spare.New = func() any { return newCall() }
	ctx, cancel := context.WithCancel(context.Background())
	p.quit = cancel
	p.start = func(f func(context.Context)) { p.wg.Go(func() { f(ctx) }) }
	return p, nil
}

// next returns a number of the stock s, or else a new one. s may be nil.
func (p *pool) next(ctx context.Context, q query, s *stock) (worker.ID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s == nil || p.useless() {
		return p.fetchOne(ctx, q, nil)
	}
	id, ok, more, wait := s.await(time.Now(), false)
	if wait != nil {
		if _, bounded := ctx.Deadline(); !bounded {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, p.cfg.Patience)
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
	refill := p.refill(q, s, more)
	if !ok {
		return p.fetchOne(ctx, q, refill)
	}
	if refill != nil {
		p.submit(refill)
	}
	return id, nil
}

// fetchOne returns a new number. refill may be nil: see fetch.
func (p *pool) fetchOne(ctx context.Context, q query, refill *call) (worker.ID, error) {
	k, err := p.fetch(ctx, q, 1, refill)
	if err != nil {
		return 0, err
	}
	id := k.one[0]
	p.spare.Put(k)
	return id, nil
}

// useless reports whether all calls fail: the client is closed, or its nodes are of two clusters.
func (p *pool) useless() bool { return p.closed.Load() || p.cluster.split.Load() != nil }

// refill returns the call that asks for more numbers for the stock, nil if more is 0. The caller must submit it.
func (p *pool) refill(q query, s *stock, more int) *call {
	if more == 0 {
		return nil
	}
	return &call{query: q, want: more, deadline: time.Now().Add(p.cfg.Patience), stock: s}
}

// fetch submits a call for n IDs or values, and waits for its answer. refill is a call for a stock, or nil. fetch
// submits both together, so that the IDs of the stock come after those of the call. It submits refill also if ctx has
// just ended, because the stock makes no other one before.
func (p *pool) fetch(ctx context.Context, q query, n int, refill *call) (*call, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(p.cfg.Patience)
	}
	k := p.spare.Get().(*call)
	k.reset(q, n, deadline)
	if refill == nil {
		p.submit(k)
	} else {
		p.submit(k, refill)
	}
	var late <-chan time.Time
	if !ok {
		late = k.alarm(p.cfg.Patience)
		defer k.timer.Stop()
	}
	select {
	case <-k.done:
		return k, k.err
	case <-ctx.Done():
	case <-late:
	}
	if k.state.CompareAndSwap(pending, abandoned) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return nil, ids.Unavailable(cmp.Or(ctx.Err(), context.DeadlineExceeded), k.last)
	}
	<-k.done // the answer came first
	return k, k.err
}

// submit puts calls into the queue and wakes a connWorker.
func (p *pool) submit(calls ...*call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		for _, k := range calls {
			k.deliver(nil, ids.ErrClosed)
		}
		return
	}
	p.queue = append(p.queue, calls...)
	if p.settling == 0 {
		p.engage()
	}
}

// close ends connections and goroutines, and fails calls with ids.ErrClosed. It may be called more than once.
func (p *pool) close() {
	p.mu.Lock()
	p.closed.Store(true)
	for _, k := range p.queue {
		k.deliver(nil, ids.ErrClosed)
	}
	p.queue = nil
	p.mu.Unlock()
	p.quit()
	p.wg.Wait()
}
