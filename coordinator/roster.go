package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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

// samplePeers is how many live peers are asked for their clocks at a time: a
// thousand nodes that each read a thousand records would be the load on
// ZooKeeper, not the heartbeats.
const samplePeers = 8

// Peers reads the clocks that live peers last reported, of all but our own
// worker (-1 when we have none) and those of our process; one of each process. A
// peer that refuses because of its own clock has no vote.
// Reports older than three heartbeats, as of our
// own last write, and those stamped by another leader than it are left out.
func (c *Coordinator) Peers(ctx context.Context, own int) ([]Reading, error) {
	live, err := liveWorkers(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	delete(live, own)
	process := ""
	if c.Process != nil {
		process = c.Process()
		for _, w := range c.Siblings() {
			delete(live, w)
		}
	}
	var slots []Slot
	var stats []zkstore.Stat
	newest := c.latest
	for _, w := range sample(live, samplePeers) {
		slot, stat, err := c.slot(ctx, w)
		if err != nil {
			return nil, err
		}
		if slot == nil || slot.Reported == 0 || slot.ClockWrong {
			continue
		}
		slots, stats = append(slots, *slot), append(stats, stat)
		if stat.Mzxid > newest.Mzxid {
			newest = stat
		}
	}
	var readings []Reading
	heard := map[string]bool{process: true}
	for i, s := range slots {
		// The newest write stands for the leader's now.
		fresh := newest.Mtime-stats[i].Mtime <= 3*max(s.HeartbeatMs, c.Interval.Milliseconds())
		if fresh && stats[i].Epoch() == newest.Epoch() && (s.Process == "" || !heard[s.Process]) {
			heard[s.Process] = true
			readings = append(readings, Reading{Sent: s.Reported, Acked: s.Reported + s.RTTMs, Stamp: stats[i].Mtime})
		}
	}
	return readings, nil
}

// sample is up to n of the workers, in order where that is all of them.
func sample(live map[int]bool, n int) []int {
	workers := slices.Sorted(maps.Keys(live))
	if len(workers) > n {
		rand.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] })
		workers = workers[:n]
	}
	return workers
}
