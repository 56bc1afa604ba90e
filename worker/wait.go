package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Counts counts the waits and refusals of reservations. A reservation that waits more than
// once counts each time.
type Counts struct {
	// TickWaits counts waits for the next tick, because the present one was used up.
	TickWaits atomic.Int64
	// RollbackWaits counts waits for a clock that went back. RollbackRefusals counts
	// refusals because of such a clock.
	RollbackWaits, RollbackRefusals atomic.Int64
}

// Next makes one ID. It waits as Reserve does and returns its errors.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	run, err := g.Reserve(ctx, 1)
	return run.First, err
}

// Reserve reserves between 1 and n consecutive IDs of one tick. If the present tick is used
// up it waits for the next one. If the clock went back it waits as the RollbackRule says.
// While it waits it blocks no other request. Errors are those of Try and of the context.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	waited := time.Duration(0)
	for {
		run, pause, err := g.Try(n, waited)
		if err != nil || run.Len > 0 {
			return run, err
		}
		if err := g.wait(ctx, pause); err != nil {
			return Run{}, err
		}
		if pause.Rollback {
			waited += pause.For
		}
	}
}

// count counts the wait that a Pause demands.
func (g *Generator) count(p Pause) {
	if p.Rollback {
		g.cfg.Counts.RollbackWaits.Add(1)
	} else {
		g.cfg.Counts.TickWaits.Add(1)
	}
}

// wait waits for a Pause that Try has returned. It blocks no other request. Its errors are
// those of the context.
func (g *Generator) wait(ctx context.Context, p Pause) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return g.gate.wait(ctx, p.Tick, func() error { return g.cfg.Sleep(ctx, p.For) })
}

// gate lets one goroutine sleep for all that wait for the same tick: a hundred connections
// at the ceiling cost one timer, not a hundred threads.
type gate struct {
	mu sync.Mutex // guards tick and open
	// open is closed when the sleeper wakes; nil when nobody sleeps.
	open chan struct{}
	tick Tick
}

// wait returns when tick may have begun. The caller must look at the clock again.
func (w *gate) wait(ctx context.Context, tick Tick, sleep func() error) error {
	w.mu.Lock()
	if w.open != nil && w.tick == tick {
		open := w.open
		w.mu.Unlock()
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// If the present sleeper waits for another tick, because the clock stepped, this
	// goroutine sleeps for itself and leaves the gate alone.
	lead := w.open == nil
	if lead {
		w.open, w.tick = make(chan struct{}), tick
	}
	w.mu.Unlock()
	err := sleep()
	if lead {
		w.mu.Lock()
		close(w.open)
		w.open = nil
		w.mu.Unlock()
	}
	return err
}

// exactBelow is the part at the end of a wait for which exactSleep is used. Before it a Go
// timer runs, which a context can interrupt.
const exactBelow = 2 * time.Millisecond

// systemSleep returns the default Sleep for one generator.
func systemSleep() func(ctx context.Context, d time.Duration) error {
	var exact exactSleep
	return func(ctx context.Context, d time.Duration) error {
		if d > exactBelow {
			timer := time.NewTimer(d - exactBelow)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			d = exactBelow
		}
		exact.sleep(d)
		return nil
	}
}
