//go:build linux

package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/flaked/flaked/worker"
)

// ring holds IDs that were made in advance, as the RingBuffer of uid-generator's
// CachedUidGenerator does. A goroutine, the filler, fills the ring whenever it is half
// empty. Taking an ID only moves a cursor. The ring exists to measure this design.
type ring struct {
	slots  []slot
	filled padded // all IDs ever put
	taken  padded // all IDs ever taken
	wake   chan struct{}
	// filling is true while the filler is awake, so that takers need not wake it. A taker
	// that reads true just before the filler goes to sleep does not wake it. The next
	// taker does.
	filling atomic.Bool

	mu   sync.Mutex // guards done, and the wait for more
	more *sync.Cond
	done bool
}

type padded struct {
	atomic.Int64
	_ [56]byte
}

// slot fills a cache line, so that two cores that take neighbouring slots do not share one.
type slot struct {
	id   atomic.Int64
	full atomic.Bool
	_    [48]byte
}

// ringSize is the size in uid-generator with its default boostPower of 3: eight times the
// 8,192 IDs of one of its ticks.
const ringSize = 8 << 13

func startRing(g *worker.Generator) (*ring, func()) {
	r := &ring{slots: make([]slot, ringSize), wake: make(chan struct{}, 1)}
	r.more = sync.NewCond(&r.mu)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.fill(ctx, g) })
	return r, func() {
		cancel()
		wg.Wait()
	}
}

func (r *ring) fill(ctx context.Context, g *worker.Generator) {
	defer func() {
		r.mu.Lock()
		r.done = true
		r.mu.Unlock()
		r.more.Broadcast()
	}()
	for {
		r.filling.Store(true)
		for {
			room := int64(ringSize) - (r.filled.Load() - r.taken.Load())
			if room == 0 {
				break
			}
			run, err := g.Reserve(ctx, int(room))
			if err != nil {
				return
			}
			r.put(run)
		}
		r.filling.Store(false)
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (r *ring) put(run worker.Run) {
	at := r.filled.Load()
	for i := range run.Len {
		s := &r.slots[(at+int64(i))%ringSize]
		for s.full.Load() { // its taker has not read it yet
		}
		s.id.Store(int64(run.First) + int64(i)*int64(run.Step))
		s.full.Store(true)
	}
	r.mu.Lock()
	r.filled.Store(at + int64(run.Len))
	r.mu.Unlock()
	r.more.Broadcast()
}

// take returns an ID, and waits while the ring is empty. It returns false if the filler has
// ended.
func (r *ring) take() (int64, bool) {
	for {
		at, filled := r.taken.Load(), r.filled.Load()
		if at >= filled {
			if !r.wait() {
				return 0, false
			}
			continue
		}
		if !r.taken.CompareAndSwap(at, at+1) {
			continue
		}
		if filled-at < ringSize/2 && !r.filling.Load() {
			r.refill()
		}
		s := &r.slots[at%ringSize]
		id := s.id.Load()
		s.full.Store(false)
		return id, true
	}
}

func (r *ring) refill() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *ring) wait() bool {
	r.refill()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.done && r.taken.Load() >= r.filled.Load() {
		r.more.Wait()
	}
	return !r.done
}

// inAdvance returns a contender that takes IDs from a ring.
func inAdvance(l worker.Layout) Contender {
	return Contender{"made in advance, ring of 65,536", "", func() (source, error) {
		g, err := generator(l, 0)
		if err != nil {
			return source{}, err
		}
		r, stop := startRing(g)
		draw := func() (int64, int) {
			id, ok := r.take()
			if !ok {
				panic("the ring has ended")
			}
			return id, 1
		}
		return source{draw: draw, epoch: l.Epoch, shift: 63 - l.TimeBits, stop: stop}, nil
	}}
}
