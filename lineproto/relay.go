package lineproto

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// relay passes the turn among goroutines. While IDs are scarce, one goroutine at a time
// reserves some. Without the relay, Go's scheduler would decide who gets the IDs of a
// new tick. It prefers goroutines that have just had some.
type relay struct {
	mu    sync.Mutex // guards turns and taken
	turns turns[chan struct{}]
	taken bool // the turn is taken

	waits atomic.Int64 // Backend.Waits when last read
	// less is how many fewer IDs than maxSlice a request may take without a turn.
	less atomic.Int64
}

// atOnce returns how many IDs a request may take without a turn. waits is the
// Backend's Waits.
func (r *relay) atOnce(waits int64) int {
	if waits != r.waits.Load() {
		r.waited(waits)
	}
	return maxSlice - int(r.less.Load())
}

// waited notes that reservations have waited for a tick.
func (r *relay) waited(waits int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits.Store(waits)
	r.turns.note(0, true)
	r.limit()
}

// limit sets less, after turns or taken have changed. While IDs are scarce and a
// goroutine has the turn, no request may overtake those that wait. mu is held.
func (r *relay) limit() {
	less := 0
	switch {
	case r.turns.scarce && r.taken:
		less = maxSlice
	case r.turns.scarce:
		less = maxSlice - tinyOrder
	}
	r.less.Store(int64(less))
}

// take waits in line k for the turn of p and returns how many IDs p may take in the
// turn. lacks is how many IDs p lacks. If take returns an error, it is that of ctx.
// Otherwise the caller must call pass.
func (r *relay) take(ctx context.Context, p *place[chan struct{}], lacks int, k rank) (may int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken {
		if p.owner == nil {
			p.owner = make(chan struct{}, 1)
		}
		r.turns.join(p, k)
		r.mu.Unlock()
		select {
		case <-p.owner:
		case <-ctx.Done():
		}
		r.mu.Lock()
		if err := ctx.Err(); err != nil {
			r.leave(p)
			return 0, err
		}
	}
	r.taken = true
	r.limit()
	return slice(lacks, r.turns.waiting(numRanks)+1, r.turns.scarce), nil
}

// leave takes p out of the queue, or hands the turn on if p has just been given it.
// mu is held.
func (r *relay) leave(p *place[chan struct{}]) {
	if p.in != nil {
		p.quit()
		return
	}
	select {
	case <-p.owner:
	default: // take has received it
	}
	r.handOn()
}

// pass ends a turn in which took IDs were reserved, and hands the turn on.
func (r *relay) pass(took int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns.note(took, false)
	r.handOn()
}

// handOn gives the turn to the next waiter. mu is held.
func (r *relay) handOn() {
	p, ok := r.turns.next(numRanks)
	r.taken = ok
	r.limit()
	if ok {
		p.owner <- struct{}{} // does not block: p waits, so its channel is empty
	}
}

// Reserve reserves between 1 and n IDs of the Backend for a caller that is not a
// connection of this server. It waits for its turn among the connections that have
// goroutines. It returns an *ids.ReplyError with BUSY if ctx ends before its turn.
func (s *Server) Reserve(ctx context.Context, n int) (worker.Run, error) {
	var p place[chan struct{}]
	may, err := s.relay.take(ctx, &p, n, rankOf(n, false))
	if err != nil {
		return worker.Run{}, replies.New(ids.BUSY, "clients are waiting for too many IDs. Retry later")
	}
	var run worker.Run
	defer func() { s.relay.pass(run.Len) }() // even after a panic, which net/http survives
	run, err = s.cfg.Backend.Reserve(ctx, min(n, may))
	return run, err
}
