package lineproto

import (
	"context"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// slowBackend makes perTick IDs in a millisecond and no more, as a worker does.
type slowBackend struct {
	fakeBackend
	perTick int
	refuse  atomic.Bool

	ticks sync.Mutex // guards until and left
	until time.Time  // the end of the present tick
	// left is how many IDs of the tick are left.
	left int
}

func (b *slowBackend) Reserve(ctx context.Context, n int) (worker.Run, error) {
	for {
		run, p, err := b.Try(n, 0)
		if p.For == 0 {
			return run, err
		}
		if !sleep(ctx, p.For) {
			return worker.Run{}, ctx.Err()
		}
	}
}

func (b *slowBackend) Try(n int, _ time.Duration) (run worker.Run, p worker.Pause, err error) {
	if b.refuse.Load() {
		return run, p, replies.New(ids.NOTREADY, "stopping")
	}
	wait, k := b.take(n)
	if k == 0 {
		b.waits.Add(1)
		return run, worker.Pause{For: max(wait, 1)}, nil
	}
	run, err = b.fakeBackend.Reserve(context.Background(), k)
	return run, p, err
}

// take takes up to n of the present tick's IDs. It returns how many, and how long the
// tick still lasts.
func (b *slowBackend) take(n int) (wait time.Duration, k int) {
	b.ticks.Lock()
	defer b.ticks.Unlock()
	now := time.Now()
	if now.After(b.until) {
		b.until, b.left = now.Truncate(time.Millisecond).Add(time.Millisecond), b.perTick
	}
	k = min(n, b.left)
	b.left -= k
	return b.until.Sub(now), k
}
