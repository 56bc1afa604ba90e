package worker

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"time"
)

// Generator makes the IDs of one tenure of one worker. It makes none until Extend has
// raised its limit. It is safe for concurrent use.
//
// If rollbacks are counted, the generator uses one value of the layout's rollback field at
// a time, in a counter. A new counter begins above all IDs that were made with its value before.
// So IDs with one value never repeat, however often the generator comes back to that value,
// and IDs with different values differ in the field.
type Generator struct {
	cfg    GeneratorConfig
	active counterPointer
	gate   gate

	mu sync.Mutex // guards the rest, and replacing active
	// free[v] is the first unused tick of value v of the rollback field. The entry of the active value is the floor of
	// the active counter. free is nil if rollbacks are not counted.
	free      []Tick
	closed    bool
	rollbacks int64
}

// NewGenerator validates the configuration. The limit of a new generator is its floor, so
// it makes no IDs before Extend.
func NewGenerator(cfg GeneratorConfig) (*Generator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.SequenceStart = cmp.Or(cfg.SequenceStart, StartRandom)
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
	g.active.Store(newCounter(&g.cfg, 0, cfg.Floor))
	return g, nil
}

// Try reserves between 1 and n consecutive IDs of one tick: the present one, or a borrowed
// one if the present one is used up. Try never blocks. If a reservation is only possible
// later, the Run is empty and the Pause says when. waited is how long the request has
// waited for a rollback already.
//
// Errors are ErrClosed, ErrLimit, ErrTimeExhausted and *BehindError.
func (g *Generator) Try(n int, waited time.Duration) (Run, Pause, error) {
	for {
		c := g.active.Load()
		run, pause, err := c.try(n, waited)
		if err == nil {
			if run.Len == 0 {
				g.count(pause)
			}
			return run, pause, nil
		}
		if !g.retryAfter(c, err) {
			if _, behind := err.(*BehindError); behind {
				g.cfg.Counts.RollbackRefusals.Add(1)
			}
			return run, pause, err
		}
	}
}

// Last returns the tick of the last ID. ok is false if no ID was made, or none since a
// rollback was counted.
func (g *Generator) Last() (tick Tick, ok bool) {
	c := g.active.Load()
	pos := c.pos.Load() &^ closedBit
	return c.last(pos), !c.isFirst(pos)
}

// retryAfter reports whether Try must try again, because another counter has replaced from or can
// replace it.
func (g *Generator) retryAfter(from *counter, err error) bool {
	if g.free == nil {
		return false
	}
	if _, behind := err.(*BehindError); behind {
		return g.rewind(from)
	}
	if err != ErrClosed {
		return false
	}
	g.mu.Lock() // waits for a rewind to finish
	defer g.mu.Unlock()
	return !g.closed
}

// rewind replaces the counter from, which the clock is behind, by one of the next value
// whose IDs are all before the clock. It returns false if there is no such value, and true
// if another goroutine has replaced it already.
func (g *Generator) rewind(from *counter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if g.active.Load() != from {
		return true // replaced already
	}
	value, ok := g.nextValue(from)
	if !ok {
		return false
	}
	//mutant:c28-value-before-its-time -> floor := min(from.tick(g.cfg.Clock.Now()), g.free[value])
	floor := g.free[value]
	next := newCounter(&g.cfg, value, floor)
	next.extend(Tick(from.limit.Load()))
	g.free[from.rollbackValue] = from.close()
	g.rollbacks++
	g.active.Store(next)
	return true
}

// nextValue returns the next value of the rollback field after from's whose IDs are all before the clock's tick. mu is
// held.
func (g *Generator) nextValue(from *counter) (value int, ok bool) {
	tick := from.tick(g.cfg.Clock.Now())
	for i := 1; i < len(g.free); i++ {
		value := (from.rollbackValue + i) % len(g.free)
		//mutant:c28-value-before-its-time by sim:one-rollback-bit -> if _ = tick; true {
		if g.free[value] <= tick { // a value comes again above its latest tick (C28)
			return value, true
		}
	}
	return 0, false
}

// Extend raises the limit: IDs may be made for ticks below it. A limit that is not above
// the present one changes nothing.
func (g *Generator) Extend(limit Tick) {
	g.mu.Lock() // else rewind could copy the limit before it rises
	defer g.mu.Unlock()
	g.active.Load().extend(limit)
}

// Ceiling returns how many IDs can be made in a second, as Layout.Ceiling does.
func (g *Generator) Ceiling() int64 { return g.cfg.Layout.Ceiling() }

// Limit returns the first tick for which no ID may be made.
func (g *Generator) Limit() Tick { return Tick(g.active.Load().limit.Load()) }

// Close ends the tenure: no reservation succeeds once Close has returned. It returns the first
// tick above all reservations: the tick of the last one + 1, or the floor if there was none. Close
// may be called more than once.
func (g *Generator) Close() Tick {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return g.end(g.active.Load().close())
}

// end returns the end of all counters, of which the active one ends at end. mu is held.
func (g *Generator) end(end Tick) Tick {
	for _, free := range g.free {
		end = max(end, free) // above the latest tick of each value (C28)
	}
	return end
}

// Behind returns how far the clock is behind the last ID, less the time that may be
// borrowed. It returns 0 or less if the clock is not behind, and 0 if the generator would
// count the rollback.
func (g *Generator) Behind() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.active.Load()
	behind := c.behind(g.cfg.Clock.Now(), c.pos.Load()&^closedBit)
	if behind > 0 && g.canRewind(c) {
		return 0
	}
	return behind
}

// Rollbacks returns how many rollbacks the generator has counted.
func (g *Generator) Rollbacks() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rollbacks
}

// Ready returns nil if Try would make an ID now or return a Pause, and otherwise the error
// that Try would return. It makes no ID.
func (g *Generator) Ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.active.Load()
	err := c.ready()
	if _, behind := err.(*BehindError); behind && g.canRewind(c) {
		return nil
	}
	return err
}

// canRewind reports whether the generator would count a rollback now and go on. mu is held.
func (g *Generator) canRewind(from *counter) bool {
	if g.free == nil {
		return false
	}
	_, ok := g.nextValue(from)
	return ok
}
