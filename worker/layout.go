package worker

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Tick counts units of a layout's time field since its epoch. Tick 0 begins
// at the epoch.
type Tick int64

// Layout divides the 63 usable bits of an ID into fields: the time at the top,
// the others in the order that Order says. The sign bit stays zero.
//
// All nodes of a cluster must use one layout: two layouts give the same number
// for different moments.
type Layout struct {
	// Epoch is the moment of tick 0, in Unix milliseconds.
	Epoch int64
	// Unit is the length of a tick, a whole number of milliseconds.
	Unit time.Duration

	TimeBits       uint8
	DatacenterBits uint8
	WorkerBits     uint8
	SequenceBits   uint8
	// SegmentBits are bits that the sequence carries into when it has run out,
	// in a place of their own: PearFlower has them above the worker. 0, as in
	// most layouts: there are none.
	SegmentBits uint8
	// RollbackBits hold a count of the times that a worker's clock went back:
	// IDs made in a time that it goes through again differ by it. 0, as in most
	// layouts, to 3.
	RollbackBits uint8

	// Order is that of the fields below the time, from the top. The zero Order
	// is rollback, segment, datacenter, worker, sequence.
	Order Order
}

// twitterEpoch is 2010-11-04T01:42:54.657Z, the epoch of Twitter's Snowflake,
// which Leaf kept.
const twitterEpoch = 1288834974657

// Fields are an ID taken apart.
type Fields struct {
	Tick       Tick
	Datacenter int64
	Worker     int64
	Sequence   int64
	// Segment is how often the sequence has carried; 0 in layouts without it.
	Segment int64
	// Rollback counts how often the worker's clock went back, and begins again
	// at 0; 0 in layouts without it.
	Rollback int64
}

// ErrLayout is what every error about a layout that cannot work wraps.
var ErrLayout = errors.New("worker: bad layout")

const (
	usableBits     = 63
	maxWorkerBits  = 24 // each worker is a record in ZooKeeper
	maxRollback    = 3
	maxSequence    = 30 // a run's length must fit an int on every platform
	earliestEpoch  = 0
	latestEpoch    = 7258118400000 // 2200-01-01; instants are kept in int64 nanoseconds, which end in 2262
	unixNanosPerMs = int64(time.Millisecond)
)

// Validate tells whether the layout can work: fields that fit into 63 bits,
// a unit of whole milliseconds, an epoch between 1970 and 2200.
func (l Layout) Validate() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrLayout, fmt.Sprintf(format, a...))
	}
	sum := int(l.TimeBits) + int(l.RollbackBits) + int(l.SegmentBits) + int(l.DatacenterBits) + int(l.WorkerBits) + int(l.SequenceBits)
	switch {
	case l.TimeBits < 1:
		return bad("the time field needs at least one bit")
	case l.WorkerBits < 1 || l.WorkerBits > maxWorkerBits:
		return bad("worker=%d: the worker field takes 1 to %d bits", l.WorkerBits, maxWorkerBits)
	case l.RollbackBits > maxRollback:
		return bad("rollback=%d: the rollback field takes at most %d bits", l.RollbackBits, maxRollback)
	case l.SequenceBits > maxSequence:
		return bad("sequence=%d: the sequence field takes at most %d bits", l.SequenceBits, maxSequence)
	case int(l.SegmentBits)+int(l.SequenceBits) > maxSequence:
		return bad("segment=%d sequence=%d: the two take at most %d bits", l.SegmentBits, l.SequenceBits, maxSequence)
	case sum > usableBits:
		return bad("%s add up to %d bits; an ID has %d, the sign bit stays zero", l.widths(), sum, usableBits)
	case !l.Order.valid():
		return bad("the order of the fields names one of them twice")
	case l.SegmentBits > 0 && l.shift(FieldSegment) < l.shift(FieldSequence):
		return bad("the segment has to be above the sequence, which carries into it: IDs of a node would not grow")
	case l.Unit < time.Millisecond || l.Unit%time.Millisecond != 0:
		return bad("a tick of %s: it must be a whole number of milliseconds", l.Unit)
	case l.Unit > time.Hour:
		return bad("a tick of %s: an hour is the longest", l.Unit)
	case l.Epoch < earliestEpoch || l.Epoch > latestEpoch:
		return bad("epoch=%d is not a Unix time in milliseconds between 1970 and 2200", l.Epoch)
	}
	return nil
}

// Workers is how many worker slots the layout has.
func (l Layout) Workers() int { return 1 << l.WorkerBits }

// Datacenters is how many datacenter ids the layout has; 1 without that field.
func (l Layout) Datacenters() int { return 1 << l.DatacenterBits }

// Sequences is how many IDs one worker can make in one tick, in all segments.
func (l Layout) Sequences() int64 { return 1 << (l.SegmentBits + l.SequenceBits) }

// Ceiling returns how many IDs one worker can make in a second, or in one tick where
// a tick is longer.
func (l Layout) Ceiling() int64 { return l.Sequences() * max(1, int64(time.Second/l.Unit)) }

// MaxTick is the last tick the time field can hold.
func (l Layout) MaxTick() Tick { return 1<<l.TimeBits - 1 }

func (l Layout) unitMs() int64 { return int64(l.Unit / time.Millisecond) }

// TickAt is the tick a moment falls into, rounded down. ns is in Unix
// nanoseconds; before the epoch the tick is negative.
func (l Layout) TickAt(ns int64) Tick {
	return Tick(floorDiv(ns-l.Epoch*unixNanosPerMs, int64(l.Unit)))
}

// FloorTick is the tick a moment in Unix milliseconds falls into. An upper
// bound (nothing at or after it) is rounded with it.
func (l Layout) FloorTick(ms int64) Tick { return Tick(floorDiv(ms-l.Epoch, l.unitMs())) }

// CeilTick is the first tick that begins at or after a moment in Unix
// milliseconds. A lower bound (nothing before it) is rounded with it.
func (l Layout) CeilTick(ms int64) Tick { return -Tick(floorDiv(l.Epoch-ms, l.unitMs())) }

// Start is the moment a tick begins, in Unix milliseconds.
func (l Layout) Start(t Tick) int64 { return l.Epoch + int64(t)*l.unitMs() }

// Expires is the moment the time field runs over: no ID can be made from then
// on. It is capped at the end of the year 9999 where the field reaches beyond.
func (l Layout) Expires() time.Time {
	end := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	ticks := int64(l.MaxTick()) + 1
	if ticks > (math.MaxInt64-l.Epoch)/l.unitMs() || l.Start(Tick(ticks)) > end.UnixMilli() {
		return end
	}
	return time.UnixMilli(l.Start(Tick(ticks))).UTC()
}

// Encode makes an ID of its fields. Every field must fit: none may overflow
// into its neighbour.
func (l Layout) Encode(f Fields) (ID, error) {
	check := func(name string, v int64, bits uint8) error {
		if v < 0 || v > 1<<bits-1 {
			return fmt.Errorf("worker: %s %d does not fit into %d bits (0 to %d)", name, v, bits, int64(1)<<bits-1)
		}
		return nil
	}
	id := int64(f.Tick) << l.timeShift()
	err := check("timestamp", int64(f.Tick), l.TimeBits)
	for _, field := range l.order() {
		v := f.get(field)
		id |= v << l.shift(field)
		err = errors.Join(err, check(field.String(), v, l.Bits(field)))
	}
	if err != nil {
		return 0, err
	}
	return ID(id), nil
}

// Decode takes an ID apart. It fails for numbers that are no ID of this
// layout: negative ones, and those with bits above the time field.
func (l Layout) Decode(id ID) (Fields, error) {
	if id < 0 {
		return Fields{}, fmt.Errorf("worker: %d is not an ID: IDs are positive", id)
	}
	value := func(field Field) int64 { return int64(id) >> l.shift(field) & (1<<l.Bits(field) - 1) }
	f := Fields{
		Tick:       Tick(id >> l.timeShift()),
		Datacenter: value(FieldDatacenter),
		Worker:     value(FieldWorker),
		Sequence:   value(FieldSequence),
		Segment:    value(FieldSegment),
		Rollback:   value(FieldRollback),
	}
	if f.Tick > l.MaxTick() {
		return Fields{}, fmt.Errorf("worker: %d is not an ID of this layout: it has bits above the %d-bit time field", id, l.TimeBits)
	}
	return f, nil
}

// Time is the moment an ID's tick began.
func (l Layout) Time(f Fields) time.Time { return time.UnixMilli(l.Start(f.Tick)).UTC() }

func (l Layout) timeShift() uint8 {
	return l.RollbackBits + l.SegmentBits + l.DatacenterBits + l.WorkerBits + l.SequenceBits
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
