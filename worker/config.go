package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
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
