package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"

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

// readAtOnce is how many reads are under way at a time: they share one
// connection, so what this saves is round trips.
const readAtOnce = 64

// ReadSlots reads every slot that has ever been used.
func ReadSlots(ctx context.Context, store zkstore.Store, cl Cluster) ([]Entry, error) {
	entries := make([]Entry, cl.Used+1)
	live, err := liveWorkers(ctx, store)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	for w := range entries {
		group.Go(func() error {
			data, stat, err := store.Get(ctx, slotPath(w))
			entries[w] = Entry{Worker: w, Slot: parseSlot(data), Stat: stat, Absent: errors.Is(err, zkstore.ErrNoNode)}
			if entries[w].Absent {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("coordinator: reading the worker slots: %w", err)
	}
	for w := range entries {
		entries[w].Live = live[w]
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
