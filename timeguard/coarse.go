package timeguard

import (
	"sync/atomic"
	"time"
)

// CoarseBoot reads the boot clock at the cost of the monotonic one, which is a tenth. After the machine was suspended,
// it is late for coarseFor at most.
type CoarseBoot struct {
	clock Clock
	// ahead is the boot clock minus the monotonic one when that read looked, ns.
	ahead, looked atomic.Int64
}

const coarseFor = 100 * time.Millisecond

// NewCoarseBoot returns a CoarseBoot of these clocks. Any goroutine may use it.
func NewCoarseBoot(c Clock) *CoarseBoot {
	b := &CoarseBoot{clock: c}
	b.look(c.Mono())
	return b
}

// Now returns the boot clock in nanoseconds.
func (b *CoarseBoot) Now() int64 {
	now := b.clock.Mono()
	if now-b.looked.Load() > int64(coarseFor) {
		b.look(now)
	}
	return now + b.ahead.Load()
}

func (b *CoarseBoot) look(now int64) {
	b.ahead.Store(b.clock.Boot() - now)
	b.looked.Store(now)
}
