package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/atomic"
)

// Clock gives the present moment in Unix nanoseconds. It may step back: what
// to do then is the RollbackRule's.
type Clock interface {
	Now() int64
}

// RollbackRule says what a request does when the clock is behind the last ID
// by so much, after having waited for that so long already: wait that long and
// look again, or refuse.
type RollbackRule interface {
	Wait(behind, waited time.Duration) (pause time.Duration, ok bool)
}

// SequenceStart is where the sequence begins in a tick that follows a tick
// with numbers to spare. After a tick that ran out it is always 0, so that
// nothing is lost at the ceiling.
type SequenceStart int

const (
	// StartRandom begins below 100, as Leaf does: at less than one ID a tick
	// they would otherwise all end in the same bits, and shards chosen by
	// modulo would all be the same one. Layouts with fewer than 800 numbers in
	// a tick begin in the lowest eighth.
	StartRandom SequenceStart = iota
	// StartZero begins at 0, as Twitter's Snowflake does.
	StartZero
	// StartCarryOn goes on from where the last tick ended, back at 0 once past
	// the middle, so that a tick always has half of its numbers.
	StartCarryOn
)

// SegmentStart is the segment that a tick begins in, where the layout has one;
// after a tick that ran out it is always the first.
type SegmentStart int

const (
	// SegmentZero begins in the first.
	SegmentZero SegmentStart = iota
	// SegmentRandom begins in any, as PearFlower does: of two machines that use
	// one number by mistake few IDs are the same. A tick has the fewer numbers
	// the later it begins.
	SegmentRandom
)

var (
	// ErrClosed: the tenure this generator belongs to has been dropped.
	ErrClosed = errors.New("worker: this tenure has ended")
	// ErrLimit: the clock, or what was borrowed, has reached the bound up to
	// which IDs may be made.
	ErrLimit = errors.New("worker: the clock has reached the bound of this tenure")
	// ErrTimeExhausted: the layout's time field is used up.
	ErrTimeExhausted = errors.New("worker: the layout's time field is used up")
)

// BehindError: the clock is behind the last ID by more than is waited for.
type BehindError struct {
	Behind time.Duration
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("worker: the clock is %s behind the last ID", e.Behind)
}

// Pause is what has to pass before a reservation can succeed.
type Pause struct {
	For time.Duration
	// Rollback: the clock went back a little. How often that is waited for is
	// the RollbackRule's; a tick that has run out is waited for as often as it
	// takes.
	Rollback bool
	// Tick is the one that is waited for.
	Tick Tick
}

// GeneratorConfig is what a Generator is made of. Layout, Clock and Rollback
// are required; the zero value of the rest is as each says.
type GeneratorConfig struct {
	Layout     Layout
	Datacenter int64
	Worker     int64
	// Floor: no ID has an earlier tick. 0 is the layout's epoch.
	Floor Tick
	Clock Clock
	// Rollback is asked when the clock is behind the last ID.
	Rollback RollbackRule
	// CountRollbacks: where that says to refuse, IDs go on with the next value
	// of the layout's rollback field, if none of that value's is ahead of the
	// clock.
	CountRollbacks bool
	// Borrow is how far ahead of the clock IDs may be made once the present
	// tick has run out, always below the limit. 0 is not at all.
	Borrow time.Duration
	// SequenceStart is StartRandom by default, SegmentStart SegmentZero.
	SequenceStart SequenceStart
	SegmentStart  SegmentStart
	// Rand returns a number in [0, n). nil means math/rand/v2.
	Rand func(n uint32) uint32
	// Counts are of what reservations had to wait for. Several generators may
	// share them. nil: they are not counted.
	Counts *Counts
	// Sleep waits for d, at least until the context ends; it should be exact to
	// some 100 microseconds. nil means the system's.
	Sleep func(ctx context.Context, d time.Duration) error
}

// validate checks the configuration.
func (cfg GeneratorConfig) validate() error {
	l := cfg.Layout
	if err := l.Validate(); err != nil {
		return err
	}
	switch {
	case cfg.Clock == nil || cfg.Rollback == nil:
		return errors.New("worker: a generator needs a clock and a rollback rule")
	case cfg.Floor < 0 || cfg.Floor > l.MaxTick():
		return fmt.Errorf("worker: floor %d is outside the layout's time field (0 to %d)", cfg.Floor, l.MaxTick())
	case cfg.CountRollbacks && l.RollbackBits == 0:
		return errors.New("worker: the layout has no rollback field to count rollbacks in")
	case cfg.SegmentStart == SegmentRandom && l.SegmentBits == 0:
		return errors.New("worker: the layout has no segment to begin in at random")
	case cfg.Borrow < 0 || cfg.Borrow > 0 && cfg.Borrow < l.Unit:
		return fmt.Errorf("worker: borrowing %s: less than a tick of %s", cfg.Borrow, l.Unit)
	}
	_, err := l.Encode(Fields{Datacenter: cfg.Datacenter, Worker: cfg.Worker})
	return err
}

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

// TryAt reserves between 1 and n consecutive IDs of one tick, which is the clock's
// or one that may be borrowed, and of no other. ok is false when there are none.
// For who makes IDs of several generators in one order.
func (g *Generator) TryAt(n int, tick Tick) (run Run, ok bool) {
	return g.lane.Load().tryAt(n, tick)
}

// Now is the tick that the clock is in, and the furthest that may be borrowed.
func (g *Generator) Now() (tick, furthest Tick) {
	l := g.lane.Load()
	tick = l.tick(g.cfg.Clock.Now())
	return tick, tick + l.borrow
}

// Last is the tick of the last ID, one before the floor where there is none.
func (g *Generator) Last() Tick {
	l := g.lane.Load()
	return l.last(l.pos.Load() &^ closedBit)
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
