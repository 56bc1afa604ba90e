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

// rulesForNode returns a cluster's rules, or why this node cannot make IDs by them.
func (c Config) rulesForNode(cl coordinator.Cluster) (rules, error) {
	r, err := parseRules(cl)
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

// parseRules parses a cluster's rules, and checks that they fit each other.
func parseRules(cl coordinator.Cluster) (r rules, err error) {
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

// rulesIfFits returns the rules of a cluster, or why this node's settings do not fit the cluster.
func (c Config) rulesIfFits(cl coordinator.Cluster) (rules, error) {
	if err := c.Settings.Agree(cl); err != nil {
		return rules{}, err
	}
	if err := c.checkHeartbeat(cl); err != nil {
		return rules{}, err
	}
	r, err := c.rulesForNode(cl)
	if err != nil {
		return r, err
	}
	if r.layout.Unit > c.Reserve/3 {
		return r, &ValueError{SettingLayout, fmt.Errorf("ticks of %s are too long for nodes, which reserve %s: a tick "+
			"must be %s or shorter. Create a cluster with another layout", r.layout.Unit, c.Reserve, c.Reserve/3)}
	}
	return r, nil
}

// checkHeartbeat returns a *RangeError if the heartbeat is too slow for a cluster. A holder
// must notice a loss of ZooKeeper's data within the confirming time, and must report twice within
// the shortest lease. A confirming time of 0 is allowed for a store in memory.
func (c Config) checkHeartbeat(cl coordinator.Cluster) error {
	confirm := ms(cl.ConfirmMs)
	_, err := limits.NoticeWithin(confirm, c.Heartbeat)
	if err != nil && !(confirm == 0 && c.InMemory) { // a loss must be noticed in time (C12)
		most := limits.MaxHeartbeat(confirm)
		if most < limits.MinHeartbeat {
			return &RangeError{Setting: SettingConfirmTime, Least: limits.MinConfirm, Problem: fmt.Sprintf(
				"the confirming time %s is too short for any heartbeat interval: %v", confirm, err)}
		}
		return &RangeError{Setting: SettingHeartbeat, Most: most, Problem: fmt.Sprintf(
			"the heartbeat interval %s is too long for the confirming time %s: %v", c.Heartbeat, confirm, err)}
	}
	if lease := timeguard.Lease(ms(cl.LeaseMs), 0); lease < 2*c.Heartbeat {
		return &RangeError{Setting: SettingHeartbeat, Most: lease / 2, Problem: fmt.Sprintf(
			"the heartbeat interval %s is too long: a node starts with a lease of %s, which must cover two heartbeats",
			c.Heartbeat, lease)}
	}
	return nil
}

// Fits returns why a node of this configuration cannot join a cluster, nil if it can. It reads
// only Settings, Heartbeat, Reserve and InMemory, and fills in no defaults.
func (c Config) Fits(cl coordinator.Cluster) error {
	_, err := c.rulesIfFits(cl)
	return err
}
