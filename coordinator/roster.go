package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// Entry is one slot as it stands in ZooKeeper.
type Entry struct {
	Worker int
	Slot   Slot
	Stat   Stat
	// Live: its holder has a session.
	Live bool
	// Absent: the record is missing though the slot has been used.
	Absent bool
}

// readAtOnce is how many reads are under way at a time: they share one
// connection, so what this saves is round trips.
const readAtOnce = 64

// ReadSlots reads every slot that has ever been used.
func ReadSlots(ctx context.Context, store Store, cl Cluster) ([]Entry, error) {
	entries := make([]Entry, cl.Used+1)
	locks, err := store.Children(ctx, livePath)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	for w := range entries {
		group.Go(func() error {
			data, stat, err := store.Get(ctx, slotPath(w))
			entries[w] = Entry{Worker: w, Slot: parseSlot(data), Stat: stat, Absent: errors.Is(err, ErrNoNode)}
			if entries[w].Absent {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("coordinator: reading the worker slots: %w", err)
	}
	for _, name := range locks {
		if w, err := strconv.Atoi(name); err == nil && w >= 0 && w < len(entries) {
			entries[w].Live = true
		}
	}
	return entries, nil
}

// samplePeers is how many live peers are asked for their clocks at a time: a
// thousand nodes that each read a thousand records would be the load on
// ZooKeeper, not the heartbeats.
const samplePeers = 8

// Peers reads the clocks that live peers last reported, of all but our own
// worker (-1 when we have none). Reports older than three heartbeats and those
// stamped by another leader are left out.
func (c *Coordinator) Peers(ctx context.Context, own int) ([]Reading, error) {
	locks, err := c.Store.Children(ctx, livePath)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, err
	}
	rand.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
	var slots []Slot
	var stats []Stat
	var newest Stat
	for _, name := range locks {
		w, err := strconv.Atoi(name)
		if err != nil || w == own || len(slots) == samplePeers {
			continue
		}
		slot, stat, err := c.slot(ctx, w)
		if err != nil {
			return nil, err
		}
		if slot == nil || slot.Reported == 0 {
			continue
		}
		slots, stats = append(slots, *slot), append(stats, stat)
		if stat.Mzxid > newest.Mzxid {
			newest = stat
		}
	}
	var readings []Reading
	for i, s := range slots {
		// The newest write stands for the leader's now.
		fresh := newest.Mtime-stats[i].Mtime <= 3*max(s.HeartbeatMs, c.Interval.Milliseconds())
		if fresh && stats[i].epoch() == newest.epoch() {
			readings = append(readings, Reading{Sent: s.Reported, Acked: s.Reported + s.RTTMs, Stamp: stats[i].Mtime})
		}
	}
	return readings, nil
}

// epoch is the leader's epoch of a record's last write.
func (s Stat) epoch() int64 { return s.Mzxid >> 32 }
