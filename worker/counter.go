package worker

import (
	"sync/atomic"
	"time"
)

// counter makes the IDs of a tenure that have one value of the rollback field, or all its
// IDs if the layout has no such field. It is safe for concurrent use.
//
// Invariant: pos, the next free position, only grows, and each ID comes from a position that a reservation has moved
// pos past. So no two IDs are the same.
//
// A position is the tick in the high bits, then the segment, then the sequence. That order is fixed, and the layout
// decides their order in an ID. A tick that is used up carries into the next one. The top bit closes the counter:
// once it is set no reservation can succeed, and the position is final. Only pos and limit change.
type counter struct {
	// Read-only once made.
	epochNs       int64
	unitNs        int64
	tickShift     uint8 // segment and sequence bits: those of a position below its tick
	idShift       uint8 // all bits of an ID below its tick
	belowTick     int64 // a position's segment and sequence
	seqMask       int64 // a position's sequence; no run crosses the end of a segment
	seqShift      uint8 // where the sequence is in an ID
	step          ID    // difference of consecutive IDs
	segBits       uint8 // bits of the segment
	segShift      uint8 // shift of the segment from a position to an ID
	maxTick       Tick
	borrow        Tick // how far positions may be ahead of the clock
	identity      int64
	rollbackValue int // value of the rollback field
	floor         Tick
	clock         Clock
	onRollback    RollbackRule
	start         SequenceStart
	segStart      SegmentStart
	rand          func(uint32) uint32
	randN         uint32

	limit atomic.Int64 // first tick that may not be used; only grows
	_     [64]byte     // pos has its own cache line: each reservation writes it
	pos   atomic.Int64
	_     [64]byte
}

// counterPointer is an atomic pointer to a counter. It stands here, beside the atomics of counter, because generator.go
// would have to take go.uber.org/atomic for it: see internal/check/docs/atomics_test.go.
type counterPointer struct{ atomic.Pointer[counter] }

const closedBit = int64(-1) << 63

// try is Generator.Try for one value of the rollback field.
func (c *counter) try(n int, waited time.Duration) (Run, Pause, error) {
	// Read the clock before the position. Then little time passes between loading the
	// position and moving it, and goroutines seldom collide.
	now := c.clock.Now()
	for {
		pos := c.pos.Load()
		if pos < 0 {
			return Run{}, Pause{}, ErrClosed
		}
		at := Tick(pos >> c.tickShift)
		tick := c.tickNear(now, at)
		limit := Tick(c.limit.Load())
		if tick >= limit {
			if tick > c.maxTick {
				return Run{}, Pause{}, ErrTimeExhausted
			}
			return Run{}, Pause{}, ErrLimit
		}
		first := pos
		if tick > at {
			first = int64(tick)<<c.tickShift | c.firstBelowTick(pos)
		} else if tick < at {
			if at > tick+c.borrow {
				// Another goroutine may have moved the position on since the clock was
				// read. Read the clock again, so that this does not look like a clock that
				// went back.
				if now = c.clock.Now(); at <= c.tick(now)+c.borrow {
					continue
				}
				pause, err := c.early(now, pos, waited)
				return Run{}, pause, err
			}
			//mutant:c27-borrows-beyond-the-bounds by sim:borrow -> if false {
			if at >= limit { // (C27) all below it has been borrowed
				return Run{}, Pause{}, ErrLimit
			}
		}
		//mutant:c1-no-tick-wait by sim -> take := int64(n)
		take := min(int64(n), c.seqMask+1-first&c.seqMask)
		if c.pos.CompareAndSwap(pos, first+take) {
			return Run{First: c.id(first), Step: c.step, Len: int(take)}, Pause{}, nil
		}
	}
}

// id returns the ID of a position.
func (c *counter) id(pos int64) ID {
	id := pos>>c.tickShift<<c.idShift | c.identity | pos&c.seqMask<<(c.seqShift&63)
	if c.segBits > 0 {
		id |= pos & (c.belowTick &^ c.seqMask) << (c.segShift & 63)
	}
	return ID(id)
}

// tick returns the tick of a moment in Unix nanoseconds.
func (c *counter) tick(now int64) Tick { return Tick(floorDiv(now-c.epochNs, c.unitNs)) }

// tickNear returns the same as tick, without its division if the moment is in the tick
// likely. The division costs 6 of the 50 ns that an ID takes.
func (c *counter) tickNear(now int64, likely Tick) Tick {
	if in := now - c.startOf(likely); 0 <= in && in < c.unitNs {
		return likely
	}
	return c.tick(now)
}

// early decides what to do when the clock, plus the time that may be borrowed, has not
// reached the tick of the next free position. If the clock is behind the last ID, the
// RollbackRule decides. Otherwise the tick before is used up, and early returns the Pause
// until the next one.
func (c *counter) early(now, pos int64, waited time.Duration) (Pause, error) {
	if behind := c.behind(now, pos); behind > 0 {
		if pause, ok := c.onRollback.Wait(behind, waited); ok {
			return Pause{For: pause, Rollback: true, Tick: c.last(pos)}, nil
		}
		return Pause{}, &BehindError{Behind: behind}
	}
	next := Tick(pos >> c.tickShift)
	return Pause{For: time.Duration(c.startOf(next-c.borrow) - now), Tick: next}, nil
}

// behind returns how far the clock, plus the time that may be borrowed, is behind the last
// ID. It returns 0 or less if the clock is not behind.
func (c *counter) behind(now, pos int64) time.Duration {
	return time.Duration(c.startOf(c.last(pos)-c.borrow) - now)
}

// isFirst reports whether no ID has been made before a position.
func (c *counter) isFirst(pos int64) bool { return pos == int64(c.floor)<<c.tickShift }

// last returns the tick of the last ID before a position, or floor - 1 if there is none.
func (c *counter) last(pos int64) Tick {
	if c.isFirst(pos) {
		return c.floor - 1
	}
	return Tick((pos - 1) >> c.tickShift)
}

// startOf returns when a tick begins, in Unix nanoseconds.
func (c *counter) startOf(t Tick) int64 { return c.epochNs + int64(t)*c.unitNs }

// firstBelowTick returns the segment and the sequence with which a new tick begins after pos.
func (c *counter) firstBelowTick(pos int64) int64 {
	if pos&c.belowTick == 0 && !c.isFirst(pos) {
		return 0 // the last tick ran out
	}
	if c.segStart == SegmentRandom {
		return int64(c.rand(1<<c.segBits))<<(c.tickShift-c.segBits) | c.firstSequence(pos&c.seqMask, c.seqMask)
	}
	return c.firstSequence(pos&c.belowTick, c.belowTick)
}

// firstSequence returns the first sequence value of a new tick. next is the value at which it stopped in the tick
// before, and most is its highest value.
func (c *counter) firstSequence(next, most int64) int64 {
	switch c.start {
	case StartRandom:
		return int64(c.rand(c.randN))
	case StartCarryOn:
		if next <= most/2 {
			return next
		}
	}
	return 0
}

// extend raises the limit, which never goes down.
func (c *counter) extend(limit Tick) {
	limit = min(limit, c.maxTick+1)
	for {
		old := c.limit.Load()
		if int64(limit) <= old || c.limit.CompareAndSwap(old, int64(limit)) {
			return
		}
	}
}

// close ends the counter: no reservation succeeds once it returns. It returns the end, which is final then.
func (c *counter) close() Tick {
	for {
		pos := c.pos.Load()
		if pos < 0 || c.pos.CompareAndSwap(pos, pos|closedBit) {
			return c.end()
		}
	}
}

// end returns the first tick above all reservations so far: the tick of the last one + 1,
// or the floor if there is none.
func (c *counter) end() Tick { return c.last(c.pos.Load()&^closedBit) + 1 }

// ready returns nil if try would make an ID now or return a Pause, and otherwise the error
// that try would return.
func (c *counter) ready() error {
	pos := c.pos.Load()
	now := c.clock.Now()
	tick, limit := c.tick(now), Tick(c.limit.Load())
	at := Tick(pos >> c.tickShift)
	switch {
	case pos < 0:
		return ErrClosed
	case tick > c.maxTick:
		return ErrTimeExhausted
	case tick >= limit:
		return ErrLimit
	case at > tick+c.borrow:
		_, err := c.early(now, pos, 0)
		return err
	case at > tick && at >= limit:
		return ErrLimit
	}
	return nil
}

// randomStarts returns how many of the n numbers of a tick it may begin with at random. The rest is half of them or
// more, so that a burst after a pause seldom waits for the next tick.
func randomStarts(n int64) int64 { return max(1, min(1024, n/2)) }

// newCounter returns a counter for a validated configuration. Its limit is its floor.
func newCounter(cfg *GeneratorConfig, value int, floor Tick) *counter {
	l := cfg.Layout
	identity, err := l.Encode(Fields{Datacenter: cfg.Datacenter, Worker: cfg.Worker, Rollback: int64(value)})
	if err != nil {
		panic(err) // checked
	}
	c := &counter{
		epochNs: l.Epoch * unixNanosPerMs, unitNs: int64(l.Unit),
		tickShift: l.SegmentBits + l.SequenceBits, idShift: l.timeShift(), belowTick: l.Sequences() - 1,
		seqMask: 1<<l.SequenceBits - 1, seqShift: l.shift(FieldSequence), step: 1 << l.shift(FieldSequence),
		segBits: l.SegmentBits, segShift: l.shift(FieldSegment) - l.SequenceBits, maxTick: l.MaxTick(),
		borrow: Tick(cfg.Borrow / l.Unit), identity: int64(identity), rollbackValue: value, floor: floor,
		clock: cfg.Clock, onRollback: cfg.OnRollback, start: cfg.SequenceStart, segStart: cfg.SegmentStart,
		rand: cfg.Rand, randN: uint32(randomStarts(l.Sequences())),
	}
	if cfg.SegmentStart == SegmentRandom {
		c.randN = uint32(randomStarts(c.seqMask + 1))
	}
	c.limit.Store(int64(floor))
	c.pos.Store(int64(floor) << c.tickShift)
	return c
}
