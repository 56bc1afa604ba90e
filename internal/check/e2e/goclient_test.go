package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	goclient "github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// calls calls Next until stop is closed. None of the calls may fail. The order of IDs that were asked for ahead is not
// checked, because they may have been issued before the call.
func (s *site) calls(c *goclient.Client, stop <-chan struct{}, ahead bool) {
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-stop:
			return
		case <-pace.C:
		}
		asked := s.ids.now()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		id, err := c.Next(ctx)
		cancel()
		got := s.ids.now()
		if err != nil {
			s.t.Errorf("a call failed after %s: %v", time.Duration(got-asked), err)
			return
		}
		if ahead {
			asked = 0
		}
		s.ids.record(answer{asked: asked, got: got}, id)
	}
}

// One of two nodes is killed under load and comes back, and then the other one is killed. Finally
// one node is suspended. No call of the Go client fails, and no ID is issued twice.
func TestGoClientFailover(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	s.build = forLoad()
	a, b := s.node().onSocket(), s.node().onSocket()
	a.start()
	b.start()
	a.ready()
	b.ready()
	stop := make(chan struct{})
	var callers sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); callers.Wait() })
	defer end()
	for _, prefetch := range []int{0, 64} {
		c, err := goclient.New(goclient.Config{
			Addrs: []string{a.listen, b.listen}, Timeout: 300 * time.Millisecond, Prefetch: prefetch, MaxAge: 100 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		for range 8 {
			callers.Go(func() { s.calls(c, stop, prefetch > 0) })
		}
	}
	from := func(n *node, worker int) {
		t.Helper()
		before := s.ids.len()
		eventually(t, n.name+" hands out IDs", func() bool { return s.ids.count(worker, before) > 200 })
	}
	wa, wb := a.worker(), b.worker()
	from(a, wa)
	a.kill()
	from(b, wb)
	a.start().ready()
	from(a, wa) // the client prefers a
	b.kill()
	from(a, wa)
	b.start().ready()
	a.proc.freeze() // a accepts and never answers
	from(b, wb)
	a.proc.thaw()
	from(a, wa)
}
