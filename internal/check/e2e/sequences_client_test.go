package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	goclient "github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Many goroutines ask three nodes by package client, while one node is killed and started again, and another one is killed. No
// call fails, and no value comes twice. One client asks one by one, one shares requests, and one holds values.
func TestGoClientsOfASequence(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	nodes := []*node{bySocket(t, s.node()), bySocket(t, s.node()), bySocket(t, s.node())}
	for _, n := range nodes {
		n.start()
	}
	for _, n := range nodes {
		n.ready()
	}
	s.create("order")
	for _, n := range nodes {
		n.until("it gives a value", func() bool { _, ok := n.next("order"); return ok })
	}
	all := &values{t: t, seen: map[int64]bool{}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for _, prefetch := range []int{0, 0, 500} {
		c := s.goClient(goclient.Config{Timeout: 300 * time.Millisecond, Patience: 20 * time.Second}, nodes...)
		order := c.SequenceWith("order", goclient.SequenceConfig{Prefetch: prefetch, MaxAge: time.Second})
		for k := range 8 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := takeOne(ctx, order, k, all); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	grows := func() {
		t.Helper()
		all.mu.Lock()
		from := len(all.seen)
		all.mu.Unlock()
		eventually(t, "the clients get values", func() bool {
			all.mu.Lock()
			defer all.mu.Unlock()
			return len(all.seen) > from+2000
		})
	}
	grows()
	nodes[0].kill()
	grows()
	nodes[0].start().ready()
	grows()
	nodes[1].kill()
	grows()
	close(stop)
	wg.Wait()
	t.Logf("%d values", len(all.seen))
}

// takeOne takes a value, or a range of some in one of eight goroutines.
func takeOne(ctx context.Context, order *goclient.Sequence, k int, all *values) error {
	if k > 0 {
		v, err := order.Next(ctx)
		if err == nil {
			all.add(v)
		}
		return err
	}
	first, last, err := order.Range(ctx, 10)
	for v := first; err == nil && v <= last; v++ {
		all.add(v)
	}
	return err
}
