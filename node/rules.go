package node

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// rules are those of a cluster's settings that IDs are made by.
type rules struct {
	layout     worker.Layout
	onRollback timeguard.RollbackPolicy
	// borrow is how far ahead of the clock a burst may make IDs.
	borrow time.Duration
}

// rulesOf reads a cluster's rules, and checks that this node can make IDs by
// them.
func (n *Node) rulesOf(cl coordinator.Cluster) (rules, error) {
	r, err := readRules(cl)
	if err != nil {
		return r, err
	}
	// What a restart after a crash may have to wait for.
	if most := n.cfg.Reserve + r.borrow + r.onRollback.Coast(); most > limits.MaxReserve {
		return r, fmt.Errorf("node: the cluster borrows %s and coasts %s ahead of the clock, and with --reserve %s a restart after a crash might wait %s: give --reserve %s or less",
			r.borrow, r.onRollback.Coast(), n.cfg.Reserve, most, limits.MaxReserve-r.borrow-r.onRollback.Coast())
	}
	if n.cfg.SegmentStart == worker.SegmentRandom && r.layout.SegmentBits == 0 {
		return r, fmt.Errorf("node: --segment-start random is for layouts with a segment, and %s has none: leave it out", r.layout)
	}
	return r, nil
}

// readRules reads a cluster's rules.
func readRules(cl coordinator.Cluster) (r rules, err error) {
	if r.layout, err = worker.ParseLayout(cl.Layout); err != nil {
		return r, err
	}
	if cl.OnRollback != "" {
		if r.onRollback, err = timeguard.ParseRollbackPolicy(cl.OnRollback); err != nil {
			return r, err
		}
	}
	r.borrow = ms(cl.BorrowMs)
	switch {
	case r.onRollback.Counts() && r.layout.RollbackBits == 0:
		err = fmt.Errorf("node: --on-rollback %s needs a layout with a rollback field, as --layout leaf,time=40,rollback=1", r.onRollback)
	case r.borrow < 0 || r.borrow > 0 && r.borrow < r.layout.Unit:
		err = fmt.Errorf("node: --borrow %s: at least a tick, which is %s", r.borrow, r.layout.Unit)
	case r.borrow+r.onRollback.Coast() > limits.MaxAhead:
		err = fmt.Errorf("node: --borrow %s and --on-rollback %s: together at most %s ahead of the clock, since a restart after a crash waits for it", r.borrow, r.onRollback, limits.MaxAhead)
	}
	return r, err
}
