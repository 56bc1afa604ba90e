package coordinator

import (
	"context"
	"errors"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// If the record of a used slot is missing, ZooKeeper has lost it, and its holder may still run. A node that notices it
// creates a Lost record (C25). That keeps the slot for the longest lease, during which the holder can put its own
// record back.

// lostUntil returns the bound of a Lost record that is created at now, Unix ms. No lease bound of the holder is above
// it.
func (c Cluster) lostUntil(now int64) int64 { return max(c.Horizon, c.lastLease(now)) }

// lostUntil is Cluster.lostUntil for now.
func (c *Coordinator) lostUntil(cl Cluster) int64 { return cl.lostUntil(max(c.Now(), c.latest.Mtime)) }

// replaceLost creates a Lost record for a worker and returns its bound.
func (c *Coordinator) replaceLost(ctx context.Context, cl Cluster, worker int) (int64, error) {
	c.Logger.Warn("ZooKeeper has lost the record of a worker, which stays kept for its holder", "worker", worker)
	h := c.lostUntil(cl)
	//mutant:c25-lost-record-counts-as-free by sim -> kept := freeSlot()
	kept := Slot{LeaseUntil: h, Lost: true}
	err := create(ctx, c.Store, slotPath(worker), kept.marshal(), store.Persistent)
	if errors.Is(err, store.ErrExists) {
		err = nil // by its holder or another new node: the slot is held either way
	}
	return h, err
}

// replaceAllLost creates a Lost record for each missing slot. A node calls it after it has frozen registration.
// Otherwise new nodes would create these records only after the freeze, and then wait for another lease.
//
// A failure is only logged, because new nodes replace what is still missing.
func (c *Coordinator) replaceAllLost(ctx context.Context, cl Cluster) {
	for range 3 { // holders may put their records back meanwhile
		missing, err := c.missing(ctx, cl)
		kept := Slot{LeaseUntil: c.lostUntil(cl), Lost: true}.marshal()
		for some := range slices.Chunk(missing, growMost) {
			ops := make([]store.Op, len(some))
			for i, worker := range some {
				ops[i] = store.CreateOp{Path: slotPath(worker), Data: kept}
			}
			err = errors.Join(err, c.Store.Multi(ctx, ops...))
		}
		if err == nil && len(missing) > 0 {
			c.Logger.Warn("ZooKeeper has lost the records of workers, which stay reserved for their holders",
				"workers", len(missing))
		}
		if err != nil && !errors.Is(err, store.ErrExists) {
			c.Logger.Warn("could not replace the lost records of workers, new nodes may wait longer", "error", err)
		}
		if !errors.Is(err, store.ErrExists) {
			return
		}
	}
}

// missing returns the slots up to HighestSlot that have no record.
func (c *Coordinator) missing(ctx context.Context, cl Cluster) (workers []int, err error) {
	names, err := c.Store.Children(ctx, workersPath)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[workersPath+"/"+name] = true
	}
	for worker := range cl.HighestSlot + 1 {
		if !there[slotPath(worker)] {
			workers = append(workers, worker)
		}
	}
	return workers, nil
}
