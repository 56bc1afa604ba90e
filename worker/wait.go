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
		whole, err := g.wait(ctx, pause)
		if err != nil {
			return Run{}, err
		}
		if pause.Rollback && whole {
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

// wait waits for a Pause that Try has returned. It blocks no other request. whole is false if it was woken before the
// Pause was over. Its errors are those of the context.
func (g *Generator) wait(ctx context.Context, p Pause) (whole bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return g.gate.wait(ctx, p.Tick, func() error { return g.cfg.Sleep(ctx, p.For) })
}

// gate lets one goroutine sleep for all that wait for the same tick: a hundred connections
// at the ceiling cost one timer, not a hundred threads.
type gate struct {
	mu      sync.Mutex // guards sleeper
	sleeper *sleeper   // nil: nobody sleeps for others
}

// sleeper is a goroutine that sleeps until a tick.
type sleeper struct {
	tick  Tick
	woken chan struct{} // closed when it wakes
	whole bool          // it slept to the end; set before woken is closed
}

// wait returns when tick may have begun. The caller must look at the clock again. whole is false if the goroutine that
// slept was woken early, because its context ended.
func (w *gate) wait(ctx context.Context, tick Tick, sleep func() error) (whole bool, err error) {
	w.mu.Lock()
	other := w.sleeper
	if other != nil && other.tick == tick {
		w.mu.Unlock()
		select {
		case <-other.woken:
			return other.whole, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	// If the present sleeper waits for another tick, because the clock stepped, this
	// goroutine sleeps for itself and leaves the gate alone.
	own := &sleeper{tick: tick, woken: make(chan struct{})}
	if other == nil {
		w.sleeper = own
	}
	w.mu.Unlock()
	err = sleep()
	if other == nil {
		w.mu.Lock()
		w.sleeper = nil
		w.mu.Unlock()
	}
	own.whole = err == nil
	close(own.woken)
	return err == nil, err
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
