package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Clock returns the present time in Unix nanoseconds. It may step back. A RollbackRule
// decides what a request does then.
type Clock interface {
	Now() int64
}

// RollbackRule decides what a request does when the clock is behind the last ID. behind is how far it is behind. waited
// is how long the request has waited so far. Waits that were cut short do not count. If ok is true, the request waits
// for pause and looks again. Otherwise it is refused.
type RollbackRule interface {
	Wait(behind, waited time.Duration) (pause time.Duration, ok bool)
}

// Pause says what a request must wait for before a reservation can succeed.
type Pause struct {
	For time.Duration
	// Rollback is set if the request waits for a clock that went back. The RollbackRule
	// limits such waits. Waits for the next tick are not limited.
	Rollback bool
	// Tick is the tick that the request waits for.
	Tick Tick
}

// GeneratorConfig configures a Generator. Layout, Clock and OnRollback are required.
type GeneratorConfig struct {
	Layout     Layout
	Datacenter int64
	Worker     int64
	// Floor is the first tick that IDs may have. 0 is the layout's epoch.
	Floor Tick
	Clock Clock
	// OnRollback is asked when the clock is behind the last ID.
	OnRollback RollbackRule
	// CountRollbacks makes the generator go on with another value of the layout's rollback
	// field when OnRollback refuses. It takes the next value whose IDs are all before the
	// clock's tick. Without such a value it refuses.
	CountRollbacks bool
	// Borrow is how far ahead of the clock IDs may be made once the present tick is used
	// up. IDs are always below the limit. 0 means no borrowing, any other value must be at
	// least a tick.
	Borrow time.Duration
	// Empty means StartRandom and SegmentZero.
	SequenceStart SequenceStart
	SegmentStart  SegmentStart
	// Rand returns a number in [0, n). nil means math/rand/v2.
	Rand func(n uint32) uint32
	// Counts counts waits and refusals. Several generators may share it. nil means that
	// they are not counted.
	Counts *Counts
	// Sleep waits for d. If the context ends first, it may return the context's error at
	// once. It should be exact to some 100 microseconds. nil means a sleep of the system.
	Sleep func(ctx context.Context, d time.Duration) error
}

// validate checks the configuration.
func (cfg GeneratorConfig) validate() error {
	l := cfg.Layout
	if err := l.Validate(); err != nil {
		return err
	}
	switch {
	case cfg.Clock == nil || cfg.OnRollback == nil:
		return errors.New("a generator needs a clock and a rollback rule")
	case cfg.Floor < 0 || cfg.Floor > l.MaxTick():
		return fmt.Errorf("floor %d is outside the layout's time field (0 to %d)", cfg.Floor, l.MaxTick())
	case cfg.CountRollbacks && l.RollbackBits == 0:
		return errors.New("counting rollbacks needs a rollback field in the layout")
	case cfg.SegmentStart == SegmentRandom && l.SegmentBits == 0:
		return errors.New("a random start segment needs a segment field in the layout")
	case cfg.Borrow < 0 || cfg.Borrow > 0 && cfg.Borrow < l.Unit:
		return fmt.Errorf("borrow %s must be 0 or at least one tick (%s)", cfg.Borrow, l.Unit)
	}
	_, err := l.Encode(Fields{Datacenter: cfg.Datacenter, Worker: cfg.Worker})
	return err
}
