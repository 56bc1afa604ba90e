package worker

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Generator makes the IDs of one tenure of one worker. It makes none until Extend has
// raised its limit. It is safe for concurrent use.
//
// If rollbacks are counted, the generator uses one value of the layout's rollback field at
// a time, in a snowflake. A new one begins above all IDs that were made with its value before.
// So IDs with one value never repeat, however often the generator comes back to that value,
// and IDs with different values differ in the field.
type Generator struct {
	cfg    GeneratorConfig
	active atomic.Pointer[snowflake]
	gate   gate

	mu sync.Mutex // guards the rest, and replacing active
	// free[v] is the first unused tick of value v of the rollback field. The entry of the
	// active value is not used. free is nil if rollbacks are not counted.
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
	g.active.Store(newSnowflake(&g.cfg, 0, cfg.Floor))
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
		s := g.active.Load()
		run, pause, err := s.try(n, waited)
		if err == nil {
			if run.Len == 0 {
				g.count(pause)
			}
			return run, pause, nil
		}
		if !g.follow(s, err) {
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
	s := g.active.Load()
	pos := s.pos.Load() &^ closedBit
	return s.last(pos), pos != int64(s.floor)<<s.shift
}

// follow reports whether Try must try again, because another snowflake has replaced from or can
// replace it.
func (g *Generator) follow(from *snowflake, err error) bool {
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

// rewind replaces the snowflake from, which the clock is behind, by one of the next value
// whose IDs are all before the clock. It returns false if there is no such value, and true
// if another goroutine has replaced it already.
func (g *Generator) rewind(from *snowflake) bool {
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
	next := newSnowflake(&g.cfg, value, floor)
	next.extend(Tick(from.limit.Load()))
	g.free[from.value] = from.close()
	g.rollbacks++
	g.active.Store(next)
	return true
}

// nextValue returns the next value of the rollback field after from's whose IDs are all before the clock's tick. mu is
// held.
func (g *Generator) nextValue(from *snowflake) (value int, ok bool) {
	tick := from.tick(g.cfg.Clock.Now())
	for i := 1; i < len(g.free); i++ {
		value := (from.value + i) % len(g.free)
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
	g.mu.Lock()
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

// end returns the end of all snowflakes, of which the active one ends at end. mu is held.
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
	s := g.active.Load()
	behind := s.behind(g.cfg.Clock.Now(), s.pos.Load()&^closedBit)
	if behind > 0 && g.free != nil {
		if _, ok := g.nextValue(s); ok {
			return 0
		}
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
	s := g.active.Load()
	err := s.ready()
	if _, behind := err.(*BehindError); behind && g.free != nil {
		if _, ok := g.nextValue(s); ok {
			return nil
		}
	}
	return err
}

// snowflake makes the IDs of a tenure that have one value of the rollback field, or all its
// IDs if the layout has no such field. It is safe for concurrent use.
//
// Invariant: pos, the next free position, only grows, and each ID comes from a position that a reservation has moved
// pos past. So no two IDs are the same.
//
// A position is the tick in the high bits, then the segment, then the sequence. That order is fixed, and the layout
// decides their order in an ID. A tick that is used up carries into the next one. The top bit closes the snowflake:
// once it is set no reservation can succeed, and the position is final. Only pos and limit change.
type snowflake struct {
	// Read-only once made.
	epochNs  int64
	unitNs   int64
	shift    uint8 // segment and sequence bits: those of a position below its tick
	idShift  uint8 // all bits of an ID below its tick
	seqMask  int64 // a position's segment and sequence
	runMask  int64 // a position's sequence; no run crosses the end of a segment
	seqShift uint8 // where the sequence is in an ID
	step     ID    // difference of consecutive IDs
	segment  uint8 // bits of the segment
	segShift uint8 // shift of the segment from a position to an ID
	maxTick  Tick
	borrow   Tick // how far positions may be ahead of the clock
	identity int64
	value    int // of the rollback field
	floor    Tick
	clock    Clock
	rollback RollbackRule
	start    SequenceStart
	segStart SegmentStart
	rand     func(uint32) uint32
	randN    uint32

	limit atomic.Int64 // first tick that may not be used; only grows
	_     [64]byte     // pos has its own cache line: each reservation writes it
	pos   atomic.Int64
	_     [64]byte
}

const closedBit = int64(-1) << 63

// try is Generator.Try for one value of the rollback field.
func (s *snowflake) try(n int, waited time.Duration) (Run, Pause, error) {
	// Read the clock before the position. Then little time passes between loading the
	// position and moving it, and goroutines seldom collide.
	now := s.clock.Now()
	for {
		pos := s.pos.Load()
		if pos < 0 {
			return Run{}, Pause{}, ErrClosed
		}
		at := Tick(pos >> s.shift)
		tick := s.tickNear(now, at)
		limit := Tick(s.limit.Load())
		if tick >= limit {
			if tick > s.maxTick {
				return Run{}, Pause{}, ErrTimeExhausted
			}
			return Run{}, Pause{}, ErrLimit
		}
		first := pos
		if tick > at {
			first = int64(tick)<<s.shift | s.firstSequence(pos)
		} else if tick < at {
			if at > tick+s.borrow {
				// Another goroutine may have moved the position on since the clock was
				// read. Read the clock again, so that this does not look like a clock that
				// went back.
				if now = s.clock.Now(); at <= s.tick(now)+s.borrow {
					continue
				}
				pause, err := s.early(now, pos, waited)
				return Run{}, pause, err
			}
			//mutant:c27-borrows-beyond-the-bounds by sim:borrow -> if false {
			if at >= limit { // (C27) all below it has been borrowed
				return Run{}, Pause{}, ErrLimit
			}
		}
		//mutant:c1-no-tick-wait by sim -> take := int64(n)
		take := min(int64(n), s.runMask+1-first&s.runMask)
		if s.pos.CompareAndSwap(pos, first+take) {
			return Run{First: s.id(first), Step: s.step, Len: int(take)}, Pause{}, nil
		}
	}
}

// id returns the ID of a position.
func (s *snowflake) id(pos int64) ID {
	id := pos>>s.shift<<s.idShift | s.identity | pos&s.runMask<<(s.seqShift&63)
	if s.segment > 0 {
		id |= pos & (s.seqMask &^ s.runMask) << (s.segShift & 63)
	}
	return ID(id)
}

// tick returns the tick of a moment in Unix nanoseconds.
func (s *snowflake) tick(now int64) Tick { return Tick(floorDiv(now-s.epochNs, s.unitNs)) }

// tickNear returns the same as tick, without its division if the moment is in the tick
// likely. The division costs 6 of the 50 ns that an ID takes.
func (s *snowflake) tickNear(now int64, likely Tick) Tick {
	if in := now - s.startOf(likely); 0 <= in && in < s.unitNs {
		return likely
	}
	return s.tick(now)
}

// early decides what to do when the clock, plus the time that may be borrowed, has not
// reached the tick of the next free position. If the clock is behind the last ID, the
// RollbackRule decides. Otherwise the tick before is used up, and early returns the Pause
// until the next one.
func (s *snowflake) early(now, pos int64, waited time.Duration) (Pause, error) {
	if behind := s.behind(now, pos); behind > 0 {
		if pause, ok := s.rollback.Wait(behind, waited); ok {
			return Pause{For: pause, Rollback: true, Tick: s.last(pos)}, nil
		}
		return Pause{}, &BehindError{Behind: behind}
	}
	next := Tick(pos >> s.shift)
	return Pause{For: time.Duration(s.startOf(next-s.borrow) - now), Tick: next}, nil
}

// behind returns how far the clock, plus the time that may be borrowed, is behind the last
// ID. It returns 0 or less if the clock is not behind.
func (s *snowflake) behind(now, pos int64) time.Duration {
	return time.Duration(s.startOf(s.last(pos)-s.borrow) - now)
}

// last returns the tick of the last ID before a position, or floor - 1 if there is none.
func (s *snowflake) last(pos int64) Tick {
	if pos == int64(s.floor)<<s.shift {
		return s.floor - 1
	}
	return Tick((pos - 1) >> s.shift)
}

// startOf returns when a tick begins, in Unix nanoseconds.
func (s *snowflake) startOf(t Tick) int64 { return s.epochNs + int64(t)*s.unitNs }

// firstSequence returns the segment and the sequence with which a new tick begins after
// pos.
func (s *snowflake) firstSequence(pos int64) int64 {
	madeNone := pos == int64(s.floor)<<s.shift // begin as after a tick that had numbers left
	if !madeNone && pos&s.seqMask == 0 {
		return 0 // the last tick ran out
	}
	if s.segStart == SegmentRandom {
		return int64(s.rand(1<<s.segment))<<(s.shift-s.segment) | s.sequence(pos&s.runMask, s.runMask)
	}
	return s.sequence(pos&s.seqMask, s.seqMask)
}

// sequence returns the first sequence value of a new tick. next is the value at which it stopped in the tick before,
// and most is its highest value.
func (s *snowflake) sequence(next, most int64) int64 {
	switch s.start {
	case StartRandom:
		return int64(s.rand(s.randN))
	case StartCarryOn:
		if next <= most/2 {
			return next
		}
	}
	return 0
}

// extend raises the limit, which never goes down.
func (s *snowflake) extend(limit Tick) {
	limit = min(limit, s.maxTick+1)
	for {
		old := s.limit.Load()
		if int64(limit) <= old || s.limit.CompareAndSwap(old, int64(limit)) {
			return
		}
	}
}

// close ends the snowflake: no reservation succeeds once it returns. It returns the end, which is final then.
func (s *snowflake) close() Tick {
	for {
		pos := s.pos.Load()
		if pos < 0 || s.pos.CompareAndSwap(pos, pos|closedBit) {
			return s.end()
		}
	}
}

// end returns the first tick above all reservations so far: the tick of the last one + 1,
// or the floor if there is none.
func (s *snowflake) end() Tick {
	pos := s.pos.Load() &^ closedBit
	if pos == int64(s.floor)<<s.shift {
		return s.floor
	}
	return Tick((pos-1)>>s.shift) + 1
}

// ready returns nil if try would make an ID now or return a Pause, and otherwise the error
// that try would return.
func (s *snowflake) ready() error {
	pos := s.pos.Load()
	now := s.clock.Now()
	tick, limit := s.tick(now), Tick(s.limit.Load())
	at := Tick(pos >> s.shift)
	switch {
	case pos < 0:
		return ErrClosed
	case tick > s.maxTick:
		return ErrTimeExhausted
	case tick >= limit:
		return ErrLimit
	case at > tick+s.borrow:
		_, err := s.early(now, pos, 0)
		return err
	case at > tick && at >= limit:
		return ErrLimit
	}
	return nil
}

// randomStarts returns how many of the n numbers of a tick it may begin with at random. The rest is half of them or
// more, so that a burst after a pause seldom waits for the next tick.
func randomStarts(n int64) int64 { return max(1, min(1024, n/2)) }

// newSnowflake returns a snowflake for a validated configuration. Its limit is its floor.
func newSnowflake(cfg *GeneratorConfig, value int, floor Tick) *snowflake {
	l := cfg.Layout
	identity, err := l.Encode(Fields{Datacenter: cfg.Datacenter, Worker: cfg.Worker, Rollback: int64(value)})
	if err != nil {
		panic(err) // checked
	}
	s := &snowflake{
		epochNs: l.Epoch * unixNanosPerMs, unitNs: int64(l.Unit),
		shift: l.SegmentBits + l.SequenceBits, idShift: l.timeShift(), seqMask: l.Sequences() - 1,
		runMask: 1<<l.SequenceBits - 1, seqShift: l.shift(FieldSequence), step: 1 << l.shift(FieldSequence),
		segment: l.SegmentBits, segShift: l.shift(FieldSegment) - l.SequenceBits, maxTick: l.MaxTick(),
		borrow: Tick(cfg.Borrow / l.Unit), identity: int64(identity), value: value, floor: floor,
		clock: cfg.Clock, rollback: cfg.Rollback, start: cfg.SequenceStart, segStart: cfg.SegmentStart,
		rand: cfg.Rand, randN: uint32(randomStarts(l.Sequences())),
	}
	if cfg.SegmentStart == SegmentRandom {
		s.randN = uint32(randomStarts(s.runMask + 1))
	}
	s.limit.Store(int64(floor))
	s.pos.Store(int64(floor) << s.shift)
	return s
}
