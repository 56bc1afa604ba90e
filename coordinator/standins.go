package coordinator

import (
	"context"
	"errors"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// If a slot up to HighestSlot has no record, ZooKeeper has lost it, and its holder may still run. A node that notices
// it creates a stand-in (C25). That keeps the slot for the longest lease, during which the holder can restore its own
// record.

// createStandIns creates a stand-in for each missing slot. A node calls it as soon as it has frozen registration: if
// new nodes created these records only after the freeze, they would wait for another lease. A node that registers calls
// it, too, if it finds no record of a slot.
func (c *Coordinator) createStandIns(ctx context.Context, cl Cluster) (err error) {
	for range 3 { // holders may restore their records meanwhile
		if err = c.tryStandIns(ctx, cl); errors.Is(err, store.ErrNoNode) {
			err = errors.Join(err, ensureRoot(ctx, c.Store))
		}
		if !mustReread(err) {
			break
		}
	}
	return err
}

// tryStandIns creates the stand-ins once.
func (c *Coordinator) tryStandIns(ctx context.Context, cl Cluster) error {
	missing, err := c.missingSlots(ctx, cl)
	if err != nil || len(missing) == 0 {
		return err
	}
	//mutant:c25-lost-record-counts-as-free by sim -> kept := freeSlot().marshal()
	kept := Slot{LeaseUntil: cl.FreezeEnd(max(c.Now(), c.lastWrite.Mtime)), StandsIn: true}.marshal()
	for some := range slices.Chunk(missing, maxGrowth) {
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

// missingSlots returns the slots up to HighestSlot that have no record.
func (c *Coordinator) missingSlots(ctx context.Context, cl Cluster) (workers []int, err error) {
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
