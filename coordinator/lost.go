package coordinator

import (
	"context"
	"errors"
	"slices"

	"github.com/flaked/flaked/zkstore"
)

// A slot's record that is missing, though the cluster has used the slot, was lost by
// ZooKeeper, and its owner may still live. A record is made in its place that keeps
// the slot for the longest lease, in which the owner can put back its own.

// lostUntil is until when a slot is kept whose record is missing now, Unix ms. It is
// never before the end of a freeze.
func (c *Coordinator) lostUntil(cl Cluster) int64 {
	now := max(c.Now(), c.latest.Mtime)
	return max(cl.FrozenUntil, now+cl.LeaseMs+lossTolerance)
}

// replaceLost makes a record in place of one that ZooKeeper lost. It returns its bound.
func (c *Coordinator) replaceLost(ctx context.Context, cl Cluster, worker int) (int64, error) {
	c.Logger.Warn("ZooKeeper has lost the record of a worker slot; it is kept for its owner", "worker", worker)
	h := c.lostUntil(cl)
	if err := ensureRoot(ctx, c.Store); err != nil {
		return 0, err
	}
	_, err := c.Store.Create(ctx, slotPath(worker), Slot{H: h, Lost: true}.marshal(), zkstore.Persistent)
	if errors.Is(err, zkstore.ErrExists) {
		err = nil // its owner, or another newcomer: held either way
	}
	return h, err
}

// replaceAllLost replaces all records that are missing, for a node that has just frozen
// registration. Without it a newcomer would replace each when it first looks at it, which
// is after the freeze, and new nodes would wait for another lease.
//
// A failure is only logged: newcomers replace what is still missing.
func (c *Coordinator) replaceAllLost(ctx context.Context, cl Cluster) {
	for range 3 { // owners put theirs back meanwhile
		missing, err := c.missing(ctx, cl)
		kept := Slot{H: c.lostUntil(cl), Lost: true}.marshal()
		for some := range slices.Chunk(missing, growMost) {
			ops := make([]zkstore.Op, len(some))
			for i, worker := range some {
				ops[i] = zkstore.CreateOp{Path: slotPath(worker), Data: kept}
			}
			err = errors.Join(err, c.Store.Multi(ctx, ops...))
		}
		if err == nil && len(missing) > 0 {
			c.Logger.Warn("ZooKeeper has lost the records of worker slots; they are kept for their owners", "workers", len(missing))
		}
		if err != nil && !errors.Is(err, zkstore.ErrExists) {
			c.Logger.Warn("the lost records of worker slots were not replaced: new nodes may have to wait for longer", "error", err)
		}
		if !errors.Is(err, zkstore.ErrExists) {
			return
		}
	}
}

// missing are the slots that the cluster has used and that have no record.
func (c *Coordinator) missing(ctx context.Context, cl Cluster) (workers []int, err error) {
	names, err := c.Store.Children(ctx, workersPath)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[workersPath+"/"+name] = true
	}
	for worker := range cl.Used + 1 {
		if !there[slotPath(worker)] {
			workers = append(workers, worker)
		}
	}
	return workers, nil
}
