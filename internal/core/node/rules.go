package node

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// rules are the cluster settings that decide how IDs are made.
type rules struct {
	layout     worker.Layout
	onRollback timeguard.RollbackPolicy
	// borrow is how far ahead of the clock a burst may make IDs. 0: not at all.
	borrow time.Duration
	// sequenceStart and segmentStart are where the sequence and the segment begin in a tick.
	sequenceStart worker.SequenceStart
	segmentStart  worker.SegmentStart
}

// rulesOf returns a cluster's rules, or why this node cannot make IDs by them.
func (c Config) rulesOf(cl coordinator.Cluster) (rules, error) {
	r, err := readRules(cl)
	if err != nil {
		return r, err
	}
	// A restart after a crash may have to wait for all three together.
	coast := r.onRollback.Coast()
	if most := c.Reserve + r.borrow + coast; most > limits.MaxReserve {
		problem := fmt.Sprintf("the cluster borrows %s and coasts %s ahead of the clock, so with the reserve %s a "+
			"restart after a crash may wait %s, more than %s", r.borrow, coast, c.Reserve, most, limits.MaxReserve)
		return r, &RangeError{Setting: SettingReserve, Problem: problem, Most: limits.MaxReserve - r.borrow - coast}
	}
	return r, nil
}

// readRules parses a cluster's rules, and checks that they fit each other.
func readRules(cl coordinator.Cluster) (r rules, err error) {
	is := Describe("", cl)
	if r.layout, err = worker.ParseLayout(is.Layout); err != nil {
		return r, err
	}
	if r.onRollback, err = timeguard.ParseRollbackPolicy(is.OnRollback); err != nil {
		return r, err
	}
	if r.sequenceStart, err = worker.ParseSequenceStart(is.SequenceStart); err != nil {
		return r, err
	}
	if r.segmentStart, err = worker.ParseSegmentStart(is.SegmentStart); err != nil {
		return r, err
	}
	r.borrow = ms(cl.BorrowMs)
	switch {
	case r.onRollback.Counts() && r.layout.RollbackBits == 0:
		err = &FieldError{Setting: SettingOnRollback, Value: r.onRollback, Field: "rollback", Layout: r.layout}
	case r.segmentStart == worker.SegmentRandom && r.layout.SegmentBits == 0:
		err = &FieldError{Setting: SettingSegmentStart, Value: r.segmentStart, Field: "segment", Layout: r.layout}
	case r.borrow < 0 || r.borrow > 0 && r.borrow < r.layout.Unit:
		err = &RangeError{Setting: SettingBorrow, Problem: fmt.Sprintf("borrow %s must be 0 or at least one tick (%s)",
			r.borrow, r.layout.Unit), Least: r.layout.Unit}
	case r.borrow+r.onRollback.Coast() > limits.MaxAhead:
		problem := fmt.Sprintf("borrow %s and the rollback policy %s may put IDs more than %s ahead of the clock, "+
			"and a restart after a crash waits that long", r.borrow, r.onRollback, limits.MaxAhead)
		err = &RangeError{Setting: SettingBorrow, Problem: problem, Most: limits.MaxAhead - r.onRollback.Coast()}
	}
	return r, err
}
