package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrConnect means that the first connections could not be opened.
var ErrConnect = errors.New("cannot connect")

// Run makes the load until the duration is over or ctx ends, and returns the
// measurements in both cases. It returns an error if the configuration is wrong, or if
// the first connections or the event loops cannot be opened.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	conns, err := openAll(cfg.Conns, func() (net.Conn, error) { return dial(ctx, cfg) })
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrConnect, err)
	}
	r := newRun(cfg)
	lanes := r.lanes(conns)
	if err := r.engine(ctx, lanes, conns); err != nil {
		return nil, err
	}
	return r.result(lanes), nil
}

// openAll opens n connections one after the other. All at once would overflow the queues of
// servers. If one cannot be opened, openAll closes the others.
func openAll(n int, open func() (net.Conn, error)) ([]net.Conn, error) {
	conns := make([]net.Conn, 0, n)
	for range n {
		c, err := open()
		if err != nil {
			closeAll(conns)
			return nil, fmt.Errorf("connection %d of %d: %w", len(conns)+1, n, err)
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

func dial(ctx context.Context, cfg Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	return cfg.Dial(ctx)
}

func newRun(cfg Config) *run {
	r := &run{cfg: cfg, request: cfg.request(), base: time.Now()}
	r.block = bytes.Repeat(r.request, max(cfg.Pipeline, 1+(64<<10)/len(r.request)))
	if cfg.Check {
		r.checker = newChecker(maxPages)
	}
	r.from = int64(cfg.Warmup)
	r.until.Store(r.from + int64(cfg.Duration))
	r.grace.Store(int64(cfg.Timeout))
	return r
}

// lanes distributes the connections over the threads.
func (r *run) lanes(conns []net.Conn) []*lane {
	lanes := make([]*lane, r.cfg.Threads)
	for i := range lanes {
		l := &lane{run: r, latency: newHistogram()}
		l.tally.errors = map[string]int64{}
		for number := i; number < len(conns); number += len(lanes) {
			l.conns = append(l.conns, newConn(l, len(l.conns), int32(number)))
		}
		if r.cfg.Rate > 0 {
			l.interval = 1e9 / r.cfg.Rate * float64(len(conns)) / float64(len(l.conns))
			l.offset = float64(i) / float64(len(lanes))
		}
		lanes[i] = l
	}
	return lanes
}

// engine runs the lanes and the watcher.
func (r *run) engine(ctx context.Context, lanes []*lane, conns []net.Conn) error {
	loops, err := r.loops(lanes, conns)
	if err != nil {
		closeAll(conns)
		return err
	}
	// The clock starts when everything is set up.
	r.base = time.Now()
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var watching, working sync.WaitGroup
	watching.Go(func() { r.watch(ctx, inner, lanes, loops) })
	for _, l := range loops {
		working.Go(func() { l.serve(inner) })
	}
	working.Wait()
	stop()
	watching.Wait()
	return nil
}

// loop serves connections of a lane until the run is over.
type loop interface {
	serve(ctx context.Context)
	wake()
}

// drainInterrupted is how long loops wait for replies after an interruption, or Timeout
// if that is less.
const drainInterrupted = time.Second

// watch ends the run when ctx ends, reports progress, and reads what the processes have
// used.
func (r *run) watch(ctx, inner context.Context, lanes []*lane, loops []loop) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	from := time.NewTimer(time.Duration(r.from))
	defer from.Stop()
	until := time.NewTimer(time.Duration(r.until.Load()))
	defer until.Stop()
	interrupted := ctx.Done()
	for {
		select {
		case <-inner.Done():
			r.use.end(r) // if the timer was late
			return
		case <-interrupted:
			interrupted = nil
			if now := r.now(); now < r.until.Load() {
				r.until.Store(now)
				r.interrupted = true
				r.use.end(r)
			}
			r.grace.Store(int64(min(drainInterrupted, r.cfg.Timeout)))
			for _, l := range loops {
				l.wake()
			}
		case <-from.C:
			r.use.begin(r)
		case <-until.C:
			r.use.end(r)
		case <-tick.C:
			if r.cfg.OnProgress != nil {
				r.cfg.OnProgress(r.progress(lanes))
			}
		}
	}
}

func (r *run) progress(lanes []*lane) Progress {
	now := r.now()
	p := Progress{WarmingUp: now < r.from, Elapsed: time.Duration(max(now-r.from, 0)), Total: r.cfg.Duration}
	p.Elapsed = min(p.Elapsed, p.Total)
	for _, l := range lanes {
		p.Replies += l.seenReplies.Load()
		p.IDs += l.seenGood.Load() * int64(r.cfg.Batch)
		p.Errors += l.seenErrors.Load()
	}
	if r.checker != nil {
		p.Violations = r.checker.violations()
	}
	return p
}

// result adds up the lanes. The loops and the watcher must have ended.
func (r *run) result(lanes []*lane) *Result {
	latency := newHistogram()
	res := &Result{
		Interrupted: r.interrupted, Latency: latency, Errors: map[string]int64{},
		Elapsed:   time.Duration(max(r.until.Load()-r.from, 0)),
		ClientCPU: r.use.client, Server: r.use.server,
	}
	for _, l := range lanes {
		res.Requests += l.good
		res.Unanswered += l.unanswered
		latency.Merge(l.latency)
		for code, n := range l.tally.errors {
			res.Errors[code] += n
		}
	}
	if r.cfg.Command == "" {
		res.IDs = res.Requests * int64(r.cfg.Batch)
	}
	if r.checker != nil {
		res.Check = &r.checker.result
	}
	return res
}
