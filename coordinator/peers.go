package coordinator

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/flaked/flaked/zkstore"
)

// samplePeers is how many live peers are asked for their clocks at a time: a
// thousand nodes that each read a thousand records would be the load on
// ZooKeeper, not the heartbeats.
const samplePeers = 8

// roster are the workers that were live when they were last listed. The list is as
// long as the cluster has nodes, so a node does not read it at every heartbeat.
type roster struct {
	listed  bool
	workers []int // ascending
	version int32 // of the list, by zkstore.Stat.Children; 0 while that is not known
	// fewReadings: fewer than half of the peers that were asked last had a reading to give.
	fewReadings bool
}

// isEnough reports whether the list need not be read again: it has more peers than are
// asked, and most of these have readings. A list of few peers is soon read, and each counts.
func (r roster) isEnough() bool { return len(r.workers) > samplePeers && !r.fewReadings }

// Peers returns the clock readings of up to eight live peers, one per process. own is our
// worker, -1 when we have none. Peers leaves out our process, and peers that refuse because
// of their own clock. It skips reports that are more than three heartbeats older than the
// newest write it knows, and reports of another epoch of the leader.
//
// It takes one round trip; two the first time; three when the list is read again.
func (c *Coordinator) Peers(ctx context.Context, own int) ([]Reading, error) {
	first := !c.roster.listed
	if first {
		if err := c.list(ctx, 0); err != nil {
			return nil, err
		}
	}
	records, version, err := c.ask(ctx, own)
	if err == nil && !first && !c.roster.isEnough() && version != c.roster.version {
		if err = c.list(ctx, version); err == nil {
			records, _, err = c.ask(ctx, own)
		}
	}
	if err != nil {
		return nil, err
	}
	readings := c.readings(records)
	c.roster.fewReadings = len(readings) < len(records)/2
	return readings, nil
}

// list lists who is live. version is that of the list as it was before.
func (c *Coordinator) list(ctx context.Context, version int32) error {
	live, err := liveWorkers(ctx, c.Store)
	if err == nil {
		c.roster = roster{listed: true, workers: slices.Sorted(maps.Keys(live)), version: version}
	}
	return err
}

// ask reads the records of some peers. version is that of the list now; while the list is
// enough it is not read, and is the one known.
func (c *Coordinator) ask(ctx context.Context, own int) (records []zkstore.Record, version int32, err error) {
	not := []int{own}
	if c.Siblings != nil {
		not = append(not, c.Siblings()...)
	}
	peers := slices.DeleteFunc(slices.Clone(c.roster.workers), func(w int) bool { return slices.Contains(not, w) })
	if len(peers) > samplePeers {
		rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
		peers = peers[:samplePeers]
	}
	var paths []string
	for _, w := range peers {
		paths = append(paths, slotPath(w))
	}
	if c.roster.isEnough() {
		records, err = c.Store.GetAll(ctx, paths...)
		return records, c.roster.version, err
	}
	records, err = c.Store.GetAll(ctx, append(paths, livePath)...)
	if err != nil {
		return nil, 0, err
	}
	return records[:len(paths)], records[len(paths)].Stat.Children, nil
}

// readings are the clocks that records report.
func (c *Coordinator) readings(records []zkstore.Record) (readings []Reading) {
	newest := c.latest // the newest write stands for the leader's now
	var slots []Slot
	var stats []zkstore.Stat
	for _, r := range records {
		if !r.Found {
			continue
		}
		s := parseSlot(r.Data)
		if s.Reported == 0 || s.ClockWrong {
			continue
		}
		slots, stats = append(slots, s), append(stats, r.Stat)
		if r.Stat.Mzxid > newest.Mzxid {
			newest = r.Stat
		}
	}
	heard := map[string]bool{}
	if c.Process != nil {
		heard[c.Process()] = true
	}
	for i, s := range slots {
		fresh := newest.Mtime-stats[i].Mtime <= 3*max(s.HeartbeatMs, c.Interval.Milliseconds())
		if fresh && stats[i].Epoch() == newest.Epoch() && (s.Process == "" || !heard[s.Process]) {
			heard[s.Process] = true
			readings = append(readings, Reading{Sent: s.Reported, Acked: s.Reported + s.RTTMs, Stamp: stats[i].Mtime})
		}
	}
	return readings
}
