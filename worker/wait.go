package worker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/atomic"
)

// Counts are what reservations have had to wait for, and were refused for. A
// reservation that waits more than once counts each time.
type Counts struct {
	// TickWaits were for the next tick: all numbers of the present one were gone.
	TickWaits atomic.Int64
	// RollbackWaits were for a clock that had gone back a little,
	// RollbackRefusals because of one that had gone back further.
	RollbackWaits, RollbackRefusals atomic.Int64
}

// Next makes one ID. It waits as Reserve does and returns its errors.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	run, err := g.Reserve(ctx, 1)
	return run.First, err
}

// Reserve takes between 1 and n consecutive IDs of one tick. It waits, holding
// nothing that others need, for the next tick when the present one has run
// out, and for a clock that went back as the rule says. Errors are those of Try
// and the context's.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	waited := time.Duration(0)
	for {
		run, pause, err := g.Try(n, waited)
		if err != nil || run.Len > 0 {
			return run, err
		}
		if err := g.Wait(ctx, pause); err != nil {
			return Run{}, err
		}
		if pause.Rollback {
			waited += pause.For
		}
	}
}

// Wait waits out a Pause of this generator's Try, holding nothing that others
// need. Its errors are the context's.
func (g *Generator) Wait(ctx context.Context, p Pause) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.Rollback {
		g.cfg.Counts.RollbackWaits.Inc()
	} else {
		g.cfg.Counts.TickWaits.Inc()
	}
	return g.gate.wait(ctx, p.Tick, func() error { return g.cfg.Sleep(ctx, p.For) })
}

// gate lets one goroutine sleep until a tick for all who wait for it: a
// hundred connections at the ceiling cost one timer, not a hundred threads.
type gate struct {
	mu sync.Mutex // guards tick and open
	// open is closed when the sleeper wakes; nil when nobody sleeps.
	open chan struct{}
	tick Tick
}

// wait returns when tick may have begun; the caller looks again in any case.
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
	// Whoever waits for another tick than the present sleeper (the clock
	// stepped) sleeps for itself and leaves the gate alone.
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

// exactBelow is what is left to the exact sleep at the end of a wait: above
// it a timer does, which a context can cut short.
const exactBelow = 2 * time.Millisecond

// systemSleep is what sleeps for one generator.
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
