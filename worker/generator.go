package worker

import (
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/atomic"
)

// Generator makes the IDs of one tenure of one worker slot. It makes none
// until Extend has raised its limit. Any number of goroutines may use it.
//
// Where rollbacks are counted it has a lane for each value of the rollback
// field, and uses one at a time. A lane that is taken up again begins above all
// that was made in it before: IDs of one value never meet, however often the
// count has come round, and those of two values differ by it.
type Generator struct {
	cfg  GeneratorConfig
	lane atomic.Pointer[lane]
	gate gate

	mu sync.Mutex // guards the rest, and that lane is replaced
	// free is for each value of the rollback field the first tick of which no
	// ID has been made with it, but for the present lane's; nil where rollbacks
	// are not counted.
	free      []Tick
	closed    bool
	rollbacks int64
}

// NewGenerator validates the configuration. The generator's limit is its
// floor: Extend it to begin.
func NewGenerator(cfg GeneratorConfig) (*Generator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Uint32N
	}
	if cfg.Sleep == nil {
		cfg.Sleep = systemSleep()
	}
	if cfg.Counts == nil {
		cfg.Counts = new(Counts)
	}
	g := &Generator{cfg: cfg}
	if cfg.CountRollbacks {
		g.free = make([]Tick, 1<<cfg.Layout.RollbackBits)
		for i := range g.free {
			g.free[i] = cfg.Floor
		}
	}
	g.lane.Store(newLane(&g.cfg, 0, cfg.Floor))
	return g, nil
}

// Try reserves between 1 and n consecutive IDs of one tick, the present one or,
// when it has run out, one that is borrowed, without ever blocking. When it
// can't but could a little later, the Pause says when; waited tells it how long
// a rollback has been waited for already.
//
// Errors are ErrClosed, ErrLimit, ErrTimeExhausted and *BehindError.
func (g *Generator) Try(n int, waited time.Duration) (Run, Pause, error) {
	for {
		l := g.lane.Load()
		run, pause, err := l.try(n, waited)
		if err == nil {
			return run, pause, nil
		}
		if !g.follow(l, err) {
			if _, behind := err.(*BehindError); behind {
				g.cfg.Counts.RollbackRefusals.Inc()
			}
			return run, pause, err
		}
	}
}

// TryAt reserves between 1 and n consecutive IDs of one tick and of no other. ok is
// false when there are none, or the clock is past it. For who makes IDs of several
// generators in one order: by one reading of Now, as a clock that is set back by a
// microsecond must not have some of them be before a tick and others in it.
func (g *Generator) TryAt(n int, tick Tick) (run Run, ok bool) {
	return g.lane.Load().tryAt(n, tick)
}

// Now is the tick that the clock is in, and the furthest that may be borrowed.
func (g *Generator) Now() (tick, furthest Tick) {
	l := g.lane.Load()
	tick = l.tick(g.cfg.Clock.Now())
	return tick, tick + l.borrow
}

// Last is the tick of the last ID. ok is false when none has been made, or none
// since a rollback was counted.
func (g *Generator) Last() (tick Tick, ok bool) {
	l := g.lane.Load()
	pos := l.pos.Load() &^ closedBit
	return l.last(pos), pos != int64(l.floor)<<l.shift
}

// Until is what has to pass before a tick may be made IDs of.
func (g *Generator) Until(tick Tick) Pause {
	l := g.lane.Load()
	return Pause{For: time.Duration(l.startOf(tick-l.borrow) - g.cfg.Clock.Now()), Tick: tick}
}

// follow tells whether what a lane refused is to be tried again, in another.
func (g *Generator) follow(from *lane, err error) bool {
	if g.free == nil {
		return false
	}
	if _, behind := err.(*BehindError); behind {
		return g.rewind(from)
	}
	if err != ErrClosed {
		return false
	}
	g.mu.Lock() // for whoever is about to replace it
	defer g.mu.Unlock()
	return !g.closed
}

// rewind goes over from a lane that the clock is behind to the next whose IDs
// are all before the clock. It tells whether there is one.
func (g *Generator) rewind(from *lane) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if g.lane.Load() != from {
		return true // somebody else has
	}
	value, ok := g.next(from)
	if !ok {
		return false
	}
	next := newLane(&g.cfg, value, g.free[value])
	next.extend(Tick(from.limit.Load()))
	from.close()
	g.free[from.value] = from.end()
	g.rollbacks++
	g.lane.Store(next)
	return true
}

// next is the value of the rollback field that comes after a lane's and has no
// ID ahead of the clock. mu is held.
func (g *Generator) next(from *lane) (value int, ok bool) {
	tick := from.tick(g.cfg.Clock.Now())
	for i := 1; i < len(g.free); i++ {
		value := (from.value + i) % len(g.free)
		if g.free[value] <= tick {
			return value, true
		}
	}
	return 0, false
}

// Extend raises the limit: IDs may be made for ticks below it. The limit never
// goes down; a lower one changes nothing.
func (g *Generator) Extend(limit Tick) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lane.Load().extend(limit)
}

// Ceiling returns how many IDs can be made in a second, as Layout.Ceiling does.
func (g *Generator) Ceiling() int64 { return g.cfg.Layout.Ceiling() }

// Limit is the first tick for which no ID may be made.
func (g *Generator) Limit() Tick { return Tick(g.lane.Load().limit.Load()) }

// Close ends the tenure: no reservation succeeds once it returns. It is
// idempotent.
func (g *Generator) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.lane.Load().close()
}

// End is the first tick that no reservation so far reaches: the last reserved
// one + 1, or the floor when there is none. After Close it is final.
func (g *Generator) End() Tick {
	g.mu.Lock()
	defer g.mu.Unlock()
	end := g.lane.Load().end()
	for _, free := range g.free {
		end = max(end, free)
	}
	return end
}

// Behind is how far the clock is behind the last ID, or behind what it may be
// ahead by where ticks may be borrowed; 0 or less when it is not, or when that
// would only be counted.
func (g *Generator) Behind() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane.Load()
	behind := l.behind(g.cfg.Clock.Now(), l.pos.Load()&^closedBit)
	if behind > 0 && g.free != nil {
		if _, ok := g.next(l); ok {
			return 0
		}
	}
	return behind
}

// Rollbacks is how many rollbacks have been counted.
func (g *Generator) Rollbacks() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rollbacks
}

// Ready is nil when Try would make an ID now or a few milliseconds later, else
// the error that it would return. It makes none.
func (g *Generator) Ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane.Load()
	err := l.ready()
	if _, behind := err.(*BehindError); behind && g.free != nil {
		if _, ok := g.next(l); ok {
			return nil
		}
	}
	return err
}
