package client

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/worker"
)

func TestStock(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1_800_000_000, int64(ms)*1e6) }
	s := &stock{size: 4, maxAge: 100 * time.Millisecond}
	take := func(ms int, want worker.ID, wantMore int) {
		t.Helper()
		id, ok, more := s.take(at(ms))
		if id != want || ok != (want != 0) || more != wantMore {
			t.Errorf("at %d ms: %d, %v, more %d; want %d, more %d", ms, id, ok, more, want, wantMore)
		}
	}
	fill := func(ms int, ids ...worker.ID) { s.filled(ids, at(ms)) }

	take(0, 0, 4) // empty: the first caller must ask for more
	take(0, 0, 0)
	fill(0, 1, 2, 3, 4)
	take(10, 1, 0)
	take(10, 2, 2) // half of it is left
	take(10, 3, 0)
	fill(10, 5, 6)
	take(100, 4, 2)
	take(101, 5, 0)
	fill(101) // failed
	take(102, 6, 4)
	fill(102, 7, 8, 9, 10)
	take(110, 7, 0)
	take(202, 8, 2)
	fill(150, 11, 12)
	take(203, 11, 3) // 9 and 10 are too old
	fill(203, 13)
	take(400, 0, 4)
}

func TestStockDiesIfTheClocksHaveMovedApart(t *testing.T) {
	const maxAge = time.Second
	for _, c := range []struct {
		monotonic, wall time.Duration
		want            bool
	}{
		{0, 0, true},
		{maxAge, maxAge, true},
		{maxAge + 1, maxAge + 1, false},
		{maxAge / 2, maxAge * 3 / 2, true},
		{maxAge / 2, maxAge*3/2 + 1, false},
		{maxAge / 2, -maxAge/2 - 1, false},
		{0, time.Hour, false},
	} {
		if got := fresh(c.monotonic, c.wall, maxAge); got != c.want {
			t.Errorf("fresh after %v, %v by the wall clock: %v", c.monotonic, c.wall, got)
		}
	}
}

// endsLater is a context that ends after Err was called once.
type endsLater struct {
	context.Context
	asked atomic.Int32
}

func (c *endsLater) Err() error {
	if c.asked.Add(1) == 1 {
		return nil
	}
	return context.Canceled
}

// A context ends when its call has found that the stock needs more. The next calls must not wait for ever for somebody
// to ask for that.
func TestStockIsFilledAlthoughTheCallEnds(t *testing.T) {
	_, addrs := nodes(t, 1)
	c := open(t, Config{Addrs: addrs, Prefetch: 10, MaxAge: time.Hour})
	_, _ = c.Next(&endsLater{Context: by(t, long)})
	until(t, "an ID is prefetched", func() bool { _, ok := c.TryNext(); return ok })
}
