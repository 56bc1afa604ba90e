package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/flaked/flaked/internal/core/store"
)

// Entry is one slot as it stands in ZooKeeper.
type Entry struct {
	Worker int
	Slot   Slot
	Stat   store.Stat
	// Live: the worker has a live lock.
	Live bool
	// Missing: the record is missing, although the slot has had one.
	Missing bool
}

// Holds reports whether the slot's last holder may run: it has not stopped cleanly. An operator who released the slot
// has not stopped its holder.
func (e Entry) Holds() bool {
	return e.Slot.Node != "" && !e.Slot.Stopped && (!e.Slot.Released || e.Slot.ReleasedBy != "")
}

// readAtOnce is the most records that are read in one round trip.
const readAtOnce = 64

// eachRecord reads the records at the paths and passes them to do, in order, until do returns false. i is the index of
// the record's path.
func eachRecord(ctx context.Context, st store.Store, paths []string, do func(i int, r store.Record) (more bool)) error {
	i := 0
	for some := range slices.Chunk(paths, readAtOnce) {
		records, err := st.GetAll(ctx, some...)
		if err != nil {
			return err
		}
		for _, r := range records {
			if !do(i, r) {
				return nil
			}
			i++
		}
	}
	return nil
}

// slotPaths returns the paths of the slots from first to last.
func slotPaths(first, last int) []string {
	var paths []string
	for worker := first; worker <= last; worker++ {
		paths = append(paths, SlotPath(worker))
	}
	return paths
}

// ReadSlots reads every slot that has ever had a record.
func ReadSlots(ctx context.Context, st store.Store, cl Cluster) ([]Entry, error) {
	live, err := liveWorkers(ctx, st)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, cl.HighestSlot+1)
	err = eachRecord(ctx, st, slotPaths(0, cl.HighestSlot), func(w int, r store.Record) bool {
		entries = append(entries, Entry{w, parseSlot(r.Data), r.Stat, live[w], !r.Found})
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("reading the workers: %w", err)
	}
	return entries, nil
}

// readSlot reads one slot of a cluster, as ReadSlots does all of them.
func readSlot(ctx context.Context, st store.Store, cl Cluster, worker int) (Entry, error) {
	e := Entry{Worker: worker, Slot: freeSlot()}
	data, stat, err := st.Get(ctx, SlotPath(worker))
	switch {
	case errors.Is(err, store.ErrNoNode):
		if e.Missing = worker <= cl.HighestSlot; e.Missing {
			e.Slot = parseSlot(nil)
		}
	case err != nil:
		return e, err
	default:
		e.Slot, e.Stat = parseSlot(data), stat
	}
	_, _, err = st.Get(ctx, lockPath(worker))
	e.Live = err == nil
	if errors.Is(err, store.ErrNoNode) {
		err = nil
	}
	return e, err
}

// liveWorkers returns the workers that have a live lock.
func liveWorkers(ctx context.Context, st store.Store) (map[int]bool, error) {
	names, err := st.Children(ctx, livePath)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		return nil, err
	}
	live := make(map[int]bool, len(names))
	for _, name := range names {
		if w, err := strconv.Atoi(name); err == nil {
			live[w] = true
		}
	}
	return live, nil
}
