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

// replaceLost creates a Lost record for each missing slot. A node calls it as soon as it has frozen registration: if
// new nodes created these records only after the freeze, they would wait for another lease.
func (c *Coordinator) replaceLost(ctx context.Context, cl Cluster) (err error) {
	for range 3 { // holders may put their records back meanwhile
		if err = c.createLost(ctx, cl); errors.Is(err, store.ErrNoNode) {
			err = errors.Join(err, ensureRoot(ctx, c.Store))
		}
		if !outpaced(err) {
			break
		}
	}
	return err
}

func (c *Coordinator) createLost(ctx context.Context, cl Cluster) error {
	missing, err := c.missing(ctx, cl)
	if err != nil || len(missing) == 0 {
		return err
	}
	//mutant:c25-lost-record-counts-as-free by sim -> kept := freeSlot().marshal()
	kept := Slot{LeaseUntil: cl.lostUntil(max(c.Now(), c.latest.Mtime)), Lost: true}.marshal()
	for some := range slices.Chunk(missing, growMost) {
		ops := make([]store.Op, len(some))
		for i, worker := range some {
			ops[i] = store.CreateOp{Path: SlotPath(worker), Data: kept}
		}
		if err := c.Store.Multi(ctx, ops...); err != nil {
			return err
		}
	}
	c.Logger.Warn("ZooKeeper has lost the records of workers, which stay reserved for their holders",
		"workers", len(missing))
	return nil
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
		if !there[SlotPath(worker)] {
			workers = append(workers, worker)
		}
	}
	return workers, nil
}
