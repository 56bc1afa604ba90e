package e2e

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goclient "github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// goClient returns a client of package client for the nodes, in order of preference.
func (s *site) goClient(cfg goclient.Config, nodes ...*node) *goclient.Client {
	s.t.Helper()
	for _, n := range nodes {
		cfg.Addrs = append(cfg.Addrs, n.listen)
	}
	c, err := goclient.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// goLoad calls Next until end is called. None of the calls may fail.
type goLoad struct {
	site    *site
	stop    chan struct{}
	wg      sync.WaitGroup
	workers sync.Map     // number of IDs (*atomic.Int64) by worker (int64)
	worst   atomic.Int64 // the longest call, ns
}

// calls starts a load. ahead says that the client prefetches IDs. Their order is not checked then,
// because they may have been issued before the call.
func (s *site) calls(c *goclient.Client, callers int, deadline time.Duration, ahead bool) *goLoad {
	l := &goLoad{site: s, stop: make(chan struct{})}
	for range callers {
		l.wg.Go(func() {
			pace := time.NewTicker(time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-l.stop:
					return
				case <-pace.C:
				}
				asked := s.ids.now()
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				id, err := c.Next(ctx)
				cancel()
				got := s.ids.now()
				if err != nil {
					s.t.Errorf("a call failed after %s: %v", got-asked, err)
					return
				}
				for took, worst := int64(got-asked), l.worst.Load(); took > worst && !l.worst.CompareAndSwap(worst, took); worst = l.worst.Load() {
				}
				if ahead {
					asked = 0
				}
				s.ids.record(asked, got, id)
				n, _ := l.workers.LoadOrStore(s.ids.worker(id), new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
			}
		})
	}
	s.t.Cleanup(l.end)
	return l
}

func (l *goLoad) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.wg.Wait()
}

func (l *goLoad) of(worker int) int64 {
	n, ok := l.workers.Load(int64(worker))
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

// isFrom waits until the load has received more than 100 further IDs of the node's worker.
func (l *goLoad) isFrom(n *node, worker int) {
	l.site.t.Helper()
	before := l.of(worker)
	eventually(l.site.t, n.name+" hands out IDs", func() bool { return l.of(worker) > before+100 })
}

// One of two nodes is killed under load and comes back, and then the other one is killed. Finally
// one node is suspended. No call fails, and no ID is issued twice.
func TestGoClientFailover(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	s.build = forLoad()
	a, b := bySocket(t, s.node()), bySocket(t, s.node())
	a.start()
	b.start()
	a.ready()
	b.ready()
	wa, wb := a.worker(), b.worker()
	const deadline = 5 * time.Second
	loads := []*goLoad{
		s.calls(s.goClient(goclient.Config{Timeout: 300 * time.Millisecond}, a, b), 8, deadline, false),
		s.calls(s.goClient(goclient.Config{Timeout: 300 * time.Millisecond, Prefetch: 64, MaxAge: 100 * time.Millisecond}, a, b), 8, deadline, true),
	}
	each := func(n *node, worker int) {
		t.Helper()
		for _, l := range loads {
			l.isFrom(n, worker)
		}
	}
	each(a, wa)
	a.kill()
	each(b, wb)
	a.start().ready()
	each(a, wa) // the client prefers a
	b.kill()
	each(a, wa)
	b.start().ready()
	a.kill()
	each(b, wb)
	a.start().ready()
	each(a, wa)
	a.proc.freeze() // a accepts and never answers
	each(b, wb)
	a.proc.thaw()
	each(a, wa)
	for i, l := range loads {
		l.end()
		t.Logf("load %d: %d IDs of %s, %d of %s, the slowest call took %s", i, l.of(wa), a.name, l.of(wb), b.name, time.Duration(l.worst.Load()).Round(time.Microsecond))
	}
}
