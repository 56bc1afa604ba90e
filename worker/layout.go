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

// Layout divides the 63 usable bits of an ID into fields: the time at the top, and the
// others in the order of Order. The sign bit stays zero.
//
// All nodes of a cluster must use one layout, because two layouts give the same number for
// different moments.
type Layout struct {
	// Epoch is the moment of tick 0, in Unix milliseconds.
	Epoch int64
	// Unit is the length of a tick, a whole number of milliseconds.
	Unit time.Duration

	TimeBits       uint8
	DatacenterBits uint8
	WorkerBits     uint8
	SequenceBits   uint8
	// SegmentBits is the width of the segment field. The sequence carries into the segment
	// when it is used up. The segment has its own place in the ID: PearFlower has it above
	// the worker. 0 means no segment, as in most layouts.
	SegmentBits uint8
	// RollbackBits is the width of the rollback field, 0 to 3. The field changes when a
	// worker's clock goes back, so that IDs made again for the same time differ. 0 means no
	// such field, as in most layouts.
	RollbackBits uint8

	// Order is the order of the fields below the time, from the top. The zero Order means
	// rollback, segment, datacenter, worker, sequence.
	Order Order
}

// twitterEpoch is 2010-11-04T01:42:54.657Z, the epoch of Twitter's Snowflake,
// which Leaf kept.
const twitterEpoch = 1288834974657

// Fields are the decoded fields of an ID.
type Fields struct {
	Tick       Tick
	Datacenter int64
	Worker     int64
	Sequence   int64
	// Segment is the segment that the sequence has carried into. It is 0 in layouts without
	// segments.
	Segment int64
	// Rollback changes when the worker's clock goes back, and begins again at 0 after its
	// highest value. It is 0 in layouts without a rollback field.
	Rollback int64
}

// ErrLayout is wrapped by every error about an invalid layout.
var ErrLayout = errors.New("bad layout")

const (
	usableBits     = 63
	maxWorkerBits  = 24 // each worker is a record in ZooKeeper
	maxRollback    = 3
	maxSequence    = 30 // a run's length must fit an int on every platform
	earliestEpoch  = 0
	latestEpoch    = 7258118400000 // 2200-01-01; instants are kept in int64 nanoseconds, which end in 2262
	unixNanosPerMs = int64(time.Millisecond)
)

// Validate returns an error that wraps ErrLayout if the layout is invalid. The fields must
// fit into 63 bits and each have a valid width and place. Unit must be whole milliseconds,
// an hour at most. Epoch must be between 1970 and 2200.
func (l Layout) Validate() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrLayout, fmt.Sprintf(format, a...))
	}
	sum := int(l.TimeBits) + int(l.RollbackBits) + int(l.SegmentBits) + int(l.DatacenterBits) + int(l.WorkerBits) +
		int(l.SequenceBits)
	switch {
	case l.TimeBits < 1:
		return bad("the time field must have at least one bit")
	case l.WorkerBits < 1 || l.WorkerBits > maxWorkerBits:
		return bad("worker=%d: the worker field must have 1 to %d bits", l.WorkerBits, maxWorkerBits)
	case l.RollbackBits > maxRollback:
		return bad("rollback=%d: the rollback field must have at most %d bits", l.RollbackBits, maxRollback)
	case l.SequenceBits > maxSequence:
		return bad("sequence=%d: the sequence field must have at most %d bits", l.SequenceBits, maxSequence)
	case int(l.SegmentBits)+int(l.SequenceBits) > maxSequence:
		return bad("segment=%d sequence=%d: together they must have at most %d bits", l.SegmentBits, l.SequenceBits,
			maxSequence)
	case sum > usableBits:
		return bad("%s add up to %d bits, but an ID has %d because the sign bit stays zero", l.widths(), sum,
			usableBits)
	case !l.Order.valid():
		return bad("the order of the fields names a field twice or is invalid")
	case l.SegmentBits > 0 && l.shift(FieldSegment) < l.shift(FieldSequence):
		return bad("the segment field must be above the sequence field, which carries into it, so that the IDs of a " +
			"node grow")
	case l.Unit < time.Millisecond || l.Unit%time.Millisecond != 0:
		return bad("the tick %s must be a whole number of milliseconds", l.Unit)
	case l.Unit > time.Hour:
		return bad("the tick %s must be an hour at most", l.Unit)
	case l.Epoch < earliestEpoch || l.Epoch > latestEpoch:
		return bad("epoch=%d must be a Unix time in milliseconds between 1970 and 2200", l.Epoch)
	}
	return nil
}

// Workers returns the number of workers of the layout.
func (l Layout) Workers() int { return 1 << l.WorkerBits }

// Datacenters returns the number of datacenters of the layout, 1 without that field.
func (l Layout) Datacenters() int { return 1 << l.DatacenterBits }

// Sequences returns how many IDs one worker can make in one tick, in all segments.
func (l Layout) Sequences() int64 { return 1 << (l.SegmentBits + l.SequenceBits) }

// Ceiling returns how many IDs one worker can make in a second, or in one tick if a tick is
// longer. It counts whole ticks only.
func (l Layout) Ceiling() int64 { return l.Sequences() * max(1, int64(time.Second/l.Unit)) }

// Even returns the greatest n for which all remainders of IDs divided by n are equally frequent, at any rate of
// requests, with StartRandom. It returns 1 if the sequence is not the lowest field.
func (l Layout) Even() int64 {
	if l.shift(FieldSequence) > 0 {
		return 1
	}
	return min(randomStarts(l.Sequences()), 1<<l.SequenceBits)
}

// MaxTick returns the last tick that the time field can hold.
func (l Layout) MaxTick() Tick { return 1<<l.TimeBits - 1 }

func (l Layout) unitMs() int64 { return int64(l.Unit / time.Millisecond) }

// FloorTick returns the tick of a moment in Unix milliseconds. Use it to round an upper
// bound, with no ID at or after it.
func (l Layout) FloorTick(ms int64) Tick { return Tick(floorDiv(ms-l.Epoch, l.unitMs())) }

// CeilTick returns the first tick that begins at or after a moment in Unix milliseconds.
// Use it to round a lower bound, with no ID before it.
func (l Layout) CeilTick(ms int64) Tick { return -Tick(floorDiv(l.Epoch-ms, l.unitMs())) }

// Start returns the moment when a tick begins, in Unix milliseconds.
func (l Layout) Start(t Tick) int64 { return l.Epoch + int64(t)*l.unitMs() }

// Expires returns the moment when the time field overflows. No ID can be made from then on.
// It returns the end of the year 9999 if the field reaches beyond that.
func (l Layout) Expires() time.Time {
	end := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	ticks := int64(l.MaxTick()) + 1
	if ticks > (math.MaxInt64-l.Epoch)/l.unitMs() || l.Start(Tick(ticks)) > end.UnixMilli() {
		return end
	}
	return time.UnixMilli(l.Start(Tick(ticks))).UTC()
}

// Encode returns the ID of the given fields. It returns an error if a field does not fit
// into its bits, and never lets it overflow into a neighbour.
func (l Layout) Encode(f Fields) (ID, error) {
	check := func(name string, v int64, bits uint8) error {
		if v < 0 || v > 1<<bits-1 {
			return fmt.Errorf("%s %d does not fit into %d bits (0 to %d)", name, v, bits, int64(1)<<bits-1)
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

// Decode returns the fields of an ID. It returns an error for a number that is not an ID of
// this layout: if it is negative, or has bits above the time field.
func (l Layout) Decode(id ID) (Fields, error) {
	if id < 0 {
		return Fields{}, fmt.Errorf("%d is not an ID: an ID must not be negative", id)
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
		return Fields{}, fmt.Errorf("%d is not an ID of this layout: it has bits above the %d-bit time field", id,
			l.TimeBits)
	}
	return f, nil
}

// Time returns the moment when an ID's tick began.
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
