package lineproto

import (
	"context"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/ids"
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
		if b.refuse.Load() {
			return worker.Run{}, ids.Reply(ids.NOTREADY, "stopping")
		}
		wait, k := b.take(n)
		if k > 0 {
			return b.fakeBackend.Reserve(ctx, k)
		}
		b.waits.Add(1)
		if !sleep(ctx, wait) {
			return worker.Run{}, ctx.Err()
		}
	}
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
