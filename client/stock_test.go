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
	fill := func(ms int, ids ...worker.ID) { s.end(ids, at(ms)) }

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

// A caller that finds nothing waits for what is on the way: a number that it asked for itself could be above those.
func TestCallersWaitForTheStock(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := &stock{size: 4, maxAge: time.Second}
	type got struct {
		id    worker.ID
		ok    bool
		more  int
		waits bool
	}
	await := func(again bool, want got) <-chan struct{} {
		t.Helper()
		id, ok, more, wait := s.await(now, again)
		if g := (got{id, ok, more, wait != nil}); g != want {
			t.Errorf("%+v, want %+v", g, want)
		}
		return wait
	}
	waits := got{waits: true}
	await(false, got{more: 4}) // asks for a number of its own, and for more
	wait := await(false, waits)
	await(false, waits)
	await(false, waits)
	s.leave() // its context has ended
	select {
	case <-wait:
		t.Error("the wait ended before the call for more")
	default:
	}
	s.end([]worker.ID{7}, now)
	<-wait
	await(true, got{id: 7, ok: true, more: 5}) // also for the other one that waits
	await(true, waits)
	s.end(nil, now)           // it has failed
	await(true, got{more: 4}) // asks itself
	if s.waiting != 0 {
		t.Errorf("%d callers wait", s.waiting)
	}
}

// The values of one caller rise, also when it empties the stock faster than the node fills it.
func TestPrefetchedValuesRise(t *testing.T) {
	_, addrs := nodes(t, 1)
	c := open(t, Config{Addrs: addrs, Prefetch: 7, MaxAge: time.Hour})
	ctx := by(t, long)
	var last worker.ID
	for k := range 20_000 {
		id, err := c.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("call %d: %d after %d", k, id, last)
		}
		last = id
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
