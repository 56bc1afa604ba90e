package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/atomic"
)

// Clock gives the present moment in Unix nanoseconds. It may step back: what
// to do then is the RollbackRule's.
type Clock interface {
	Now() int64
}

// RollbackRule says what to do when the clock is behind the last ID by so
// much: wait that long and look again, once, or refuse.
type RollbackRule interface {
	Wait(behind time.Duration) (pause time.Duration, ok bool)
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

var (
	// ErrClosed: the tenure this generator belongs to has been dropped.
	ErrClosed = errors.New("worker: this tenure has ended")
	// ErrLimit: the clock has reached the bound up to which IDs may be made.
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
	// Rollback: the clock went back a little. This is waited for once; a tick
	// that has run out is waited for as often as it takes.
	Rollback bool
	tick     Tick // the tick being waited for, when not Rollback
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
	// SequenceStart is StartRandom by default.
	SequenceStart SequenceStart
	// Rand returns a number in [0, n). nil means math/rand/v2.
	Rand func(n uint32) uint32
	// Counts are of what reservations had to wait for. Several generators may
	// share them. nil: they are not counted.
	Counts *Counts
	// Sleep waits for d, at least until the context ends; it should be exact to
	// some 100 microseconds. nil means the system's.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Generator makes the IDs of one tenure of one worker slot. It makes none
// until Extend has raised its limit. Any number of goroutines may use it.
//
// All state is one number, the next free position: the tick, and below it the
// segment and the sequence, wherever these stand in an ID. A reservation moves
// it forward by compare-and-swap and is what it skipped over, so no two hold
// the same position, positions only grow, and a tick that has run out carries
// into the next by itself. The top bit says that the tenure is over: once it is
// set no reservation can succeed, and whoever set it knows the last position
// there will ever be.
type Generator struct {
	// Read-only after New.
	layout   Layout
	epochNs  int64
	unitNs   int64
	shift    uint8 // segment and sequence bits: those of a position below its tick
	idShift  uint8 // all bits of an ID below its tick
	seqMask  int64 // a position's segment and sequence
	runMask  int64 // its sequence: no run reaches over the end of a segment
	seqShift uint8 // where the sequence is in an ID
	step     ID    // between neighbours
	segment  uint8 // bits of the segment
	segShift uint8 // how much further up than in a position it is in an ID
	maxTick  Tick
	identity int64
	floor    Tick
	clock    Clock
	rollback RollbackRule
	start    SequenceStart
	rand     func(uint32) uint32
	randN    uint32
	sleep    func(context.Context, time.Duration) error
	counts   *Counts

	limit atomic.Int64 // first tick that may not be used; only grows
	_     [64]byte     // position is written by every reservation: a cache line of its own
	pos   atomic.Int64
	_     [64]byte
	gate  gate
}

const closedBit = int64(-1) << 63

// NewGenerator validates the configuration. The generator's limit is its
// floor: Extend it to begin.
func NewGenerator(cfg GeneratorConfig) (*Generator, error) {
	l := cfg.Layout
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if cfg.Clock == nil || cfg.Rollback == nil {
		return nil, errors.New("worker: a generator needs a clock and a rollback rule")
	}
	if cfg.Floor < 0 || cfg.Floor > l.MaxTick() {
		return nil, fmt.Errorf("worker: floor %d is outside the layout's time field (0 to %d)", cfg.Floor, l.MaxTick())
	}
	id, err := l.Encode(Fields{Datacenter: cfg.Datacenter, Worker: cfg.Worker})
	if err != nil {
		return nil, err
	}
	g := &Generator{
		layout: l, epochNs: l.Epoch * unixNanosPerMs, unitNs: int64(l.Unit),
		shift: l.SegmentBits + l.SequenceBits, idShift: l.timeShift(), seqMask: l.Sequences() - 1,
		runMask: 1<<l.SequenceBits - 1, seqShift: l.shift(FieldSequence), step: 1 << l.shift(FieldSequence),
		segment: l.SegmentBits, segShift: l.shift(FieldSegment) - l.SequenceBits, maxTick: l.MaxTick(),
		identity: int64(id), floor: cfg.Floor,
		clock: cfg.Clock, rollback: cfg.Rollback, start: cfg.SequenceStart,
		rand: cfg.Rand, randN: uint32(max(1, min(100, l.Sequences()/8))), sleep: cfg.Sleep, counts: cfg.Counts,
	}
	if g.counts == nil {
		g.counts = new(Counts)
	}
	if g.rand == nil {
		g.rand = rand.Uint32N
	}
	if g.sleep == nil {
		g.sleep = systemSleep()
	}
	g.limit.Store(int64(cfg.Floor))
	g.pos.Store(int64(cfg.Floor) << g.shift)
	return g, nil
}

// Try reserves between 1 and n consecutive IDs of the present tick without
// ever blocking. When it can't but could a little later, the Pause says when;
// waited tells it that a rollback's pause has been waited out already.
//
// Errors are ErrClosed, ErrLimit, ErrTimeExhausted and *BehindError.
func (g *Generator) Try(n int, waited bool) (Run, Pause, error) {
	for {
		pos := g.pos.Load()
		// The clock is read after the position: a position that another
		// goroutine moves on meanwhile makes the swap below fail, it is never
		// taken for a clock that went back.
		now := g.clock.Now()
		tick := Tick(floorDiv(now-g.epochNs, g.unitNs))
		if pos < 0 {
			return Run{}, Pause{}, ErrClosed
		}
		if int64(tick) >= g.limit.Load() {
			if tick > g.maxTick {
				return Run{}, Pause{}, ErrTimeExhausted
			}
			return Run{}, Pause{}, ErrLimit
		}
		first := pos
		if at := Tick(pos >> g.shift); tick > at {
			first = int64(tick)<<g.shift | g.firstSequence(pos)
		} else if tick < at {
			pause, err := g.early(now, pos, waited)
			return Run{}, pause, err
		}
		take := min(int64(n), g.runMask+1-first&g.runMask)
		if g.pos.CompareAndSwap(pos, first+take) {
			id := first>>g.shift<<g.idShift | g.identity | first&g.runMask<<(g.seqShift&63)
			if g.segment > 0 {
				id |= first & (g.seqMask &^ g.runMask) << (g.segShift & 63)
			}
			return Run{First: ID(id), Step: g.step, Len: int(take)}, Pause{}, nil
		}
	}
}

// early is what to do when the clock has not reached the tick of the next free
// position: the tick before it has run out, or the clock is behind.
func (g *Generator) early(now, pos int64, waited bool) (Pause, error) {
	next := Tick(pos >> g.shift)
	last := Tick((pos - 1) >> g.shift)
	if pos == int64(g.floor)<<g.shift {
		last = g.floor - 1
	}
	lastStart := g.epochNs + int64(last)*g.unitNs
	if behind := time.Duration(lastStart - now); behind > 0 {
		if pause, ok := g.rollback.Wait(behind); ok && !waited {
			return Pause{For: pause, Rollback: true}, nil
		}
		return Pause{}, &BehindError{Behind: behind}
	}
	return Pause{For: time.Duration(g.epochNs + int64(next)*g.unitNs - now), tick: next}, nil
}

func (g *Generator) firstSequence(pos int64) int64 {
	if pos == int64(g.floor)<<g.shift {
		// Nothing made yet: as after a tick with numbers to spare.
	} else if pos&g.seqMask == 0 {
		return 0 // the last tick ran out
	}
	switch g.start {
	case StartRandom:
		return int64(g.rand(g.randN))
	case StartCarryOn:
		if next := pos & g.seqMask; next <= g.seqMask/2 {
			return next
		}
	}
	return 0
}

// Extend raises the limit: IDs may be made for ticks below it. The limit never
// goes down; a lower one changes nothing.
func (g *Generator) Extend(limit Tick) {
	limit = min(limit, g.maxTick+1)
	for {
		old := g.limit.Load()
		if int64(limit) <= old || g.limit.CompareAndSwap(old, int64(limit)) {
			return
		}
	}
}

// Limit is the first tick for which no ID may be made.
func (g *Generator) Limit() Tick { return Tick(g.limit.Load()) }

// Close ends the tenure: no reservation succeeds once it returns. It is
// idempotent.
func (g *Generator) Close() {
	for {
		pos := g.pos.Load()
		if pos < 0 || g.pos.CompareAndSwap(pos, pos|closedBit) {
			return
		}
	}
}

// End is the first tick that no reservation so far reaches: the last reserved
// one + 1, or the floor when there is none. After Close it is final.
func (g *Generator) End() Tick {
	pos := g.pos.Load() &^ closedBit
	if pos == int64(g.floor)<<g.shift {
		return g.floor
	}
	return Tick((pos-1)>>g.shift) + 1
}

// Ready is nil when Try would make an ID now or a few milliseconds later, else
// the error that it would return. It makes none.
func (g *Generator) Ready() error {
	pos := g.pos.Load()
	now := g.clock.Now()
	tick := Tick(floorDiv(now-g.epochNs, g.unitNs))
	switch {
	case pos < 0:
		return ErrClosed
	case tick > g.maxTick:
		return ErrTimeExhausted
	case int64(tick) >= g.limit.Load():
		return ErrLimit
	case tick < Tick(pos>>g.shift):
		_, err := g.early(now, pos, false)
		return err
	}
	return nil
}
