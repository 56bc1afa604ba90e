package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/flaked/flaked/zkstore"
)

// Entry is one slot as it stands in ZooKeeper.
type Entry struct {
	Worker int
	Slot   Slot
	Stat   zkstore.Stat
	// Live: its holder has a session.
	Live bool
	// Absent: the record is missing though the slot has been used.
	Absent bool
}

// readAtOnce is how many records are read in one round trip.
const readAtOnce = 64

// eachSlot reads the records of the slots from from up to but not including to, and hands
// them to do, in order, until do returns false.
func eachSlot(ctx context.Context, store zkstore.Store, from, to int, do func(worker int, r zkstore.Record) (more bool)) error {
	for ; from < to; from += readAtOnce {
		var paths []string
		for worker := from; worker < min(from+readAtOnce, to); worker++ {
			paths = append(paths, slotPath(worker))
		}
		records, err := store.GetAll(ctx, paths...)
		if err != nil {
			return err
		}
		for i, r := range records {
			if !do(from+i, r) {
				return nil
			}
		}
	}
	return nil
}

// ReadSlots reads every slot that has ever been used.
func ReadSlots(ctx context.Context, store zkstore.Store, cl Cluster) ([]Entry, error) {
	live, err := liveWorkers(ctx, store)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, cl.Used+1)
	err = eachSlot(ctx, store, 0, cl.Used+1, func(w int, r zkstore.Record) bool {
		entries = append(entries, Entry{Worker: w, Slot: parseSlot(r.Data), Stat: r.Stat, Live: live[w], Absent: !r.Found})
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("coordinator: reading the worker slots: %w", err)
	}
	return entries, nil
}

// ReadSlot reads one slot of a cluster, as ReadSlots does all of them.
func ReadSlot(ctx context.Context, store zkstore.Store, cl Cluster, worker int) (Entry, error) {
	e := Entry{Worker: worker, Slot: freeSlot()}
	data, stat, err := store.Get(ctx, slotPath(worker))
	switch {
	case errors.Is(err, zkstore.ErrNoNode):
		if e.Absent = worker <= cl.Used; e.Absent {
			e.Slot = parseSlot(nil)
		}
	case err != nil:
		return e, err
	default:
		e.Slot, e.Stat = parseSlot(data), stat
	}
	_, _, err = store.Get(ctx, lockPath(worker))
	e.Live = err == nil
	if errors.Is(err, zkstore.ErrNoNode) {
		err = nil
	}
	return e, err
}

// liveWorkers are those whose holders have a session.
func liveWorkers(ctx context.Context, store zkstore.Store) (map[int]bool, error) {
	names, err := store.Children(ctx, livePath)
	if err != nil && !errors.Is(err, zkstore.ErrNoNode) {
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
