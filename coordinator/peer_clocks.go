package coordinator

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// maxSample is the most peers whose clocks are read at once. If a thousand nodes each read a thousand records, that
// would load ZooKeeper more than their heartbeats do.
const maxSample = 8

// relistAfter is the age of a list that has changed, in heartbeats, at which a node reads it again. Somebody must have
// met each node, or nobody knows where to ask it if ZooKeeper loses its record.
const relistAfter = 20

// liveList is the list of live workers as this node last read it. The list has an entry for each node of the cluster,
// so a node does not read it at every heartbeat.
type liveList struct {
	read    bool        // false: not yet, and the fields up to version are not valid
	readAt  int64       // ns of Elapsed.AtLeast
	workers []int       // ascending
	version listVersion // the list's version before that read; zero: not known
	// count is the number of live workers, and present the version of the list, when a heartbeat or ReadPeerClocks last
	// looked at the stat of the list's parent.
	count   int
	present listVersion
	// fewReadings: fewer than half of the records read last had a reading.
	fewReadings bool
}

// sample has the records of peers, and the version of the list that they were read with.
type sample struct {
	records []store.Record
	version listVersion
}

// listVersion identifies a state of the list of live workers. It changes when a worker is added or removed, and when
// the list is created anew.
type listVersion struct {
	made    int64 // Czxid of the list's parent
	changes int32 // Stat.Children of the list's parent
}

// ReadPeerClocks returns the clock readings of up to eight live peers. own is our worker, -1 when we have none.
// ReadPeerClocks leaves out peers that refuse because of their own clock. It skips reports that are more than three
// heartbeats older than the newest write it knows, and reports of another epoch of the leader.
//
// ReadPeerClocks takes the records that the heartbeat b has read together with its own. Without such records, and for
// the zero Beat, it reads some itself, in one round trip, or two the first time. It reads the list of live workers
// again, in two more, if the list has changed and one of these holds: there are at most eight peers, fewer than half of
// them have readings, or the list is old. With few peers the list is short, and each reading counts.
//
// The heartbeat has read these records a round trip before the write that they are compared with. No rule rests on
// that: a reading may be as old as three heartbeats.
func (c *Coordinator) ReadPeerClocks(ctx context.Context, own int, b Beat) ([]Reading, error) {
	first := !c.live.read
	if first {
		if err := c.readLiveList(ctx, listVersion{}); err != nil {
			return nil, err
		}
	}
	peers := c.livePeers(own)
	old := c.Elapsed.AtLeast()-c.live.readAt >= int64(relistAfter*c.Interval)
	enough := len(peers) > maxSample && !c.live.fewReadings && !old
	found := b.sample
	var err error
	if found == nil {
		found, err = c.readSample(ctx, peers)
	}
	if err == nil && !first && !enough && found.version != c.live.version {
		if err = c.readLiveList(ctx, found.version); err == nil {
			found, err = c.readSample(ctx, c.livePeers(own))
		}
	}
	if err != nil {
		return nil, err
	}
	readings := c.readings(found.records)
	c.live.fewReadings = 2*len(readings) < len(found.records)
	return readings, nil
}

// readLiveList reads the list of live workers. version is the list's version before that.
func (c *Coordinator) readLiveList(ctx context.Context, version listVersion) error {
	live, err := liveWorkers(ctx, c.Store)
	if err == nil {
		workers := slices.Sorted(maps.Keys(live))
		c.live = liveList{read: true, readAt: c.Elapsed.AtLeast(), workers: workers, version: version, count: len(live),
			present: c.live.present}
	}
	return err
}

// livePeers returns the workers on the list of live workers without our own.
func (c *Coordinator) livePeers(own int) []int {
	return slices.DeleteFunc(slices.Clone(c.live.workers), func(w int) bool { return w == own })
}

// readSample reads the records of up to maxSample random peers, and the present version of the list.
func (c *Coordinator) readSample(ctx context.Context, peers []int) (*sample, error) {
	peers = randomPeers(peers)
	records, err := c.Store.GetAll(ctx, samplePaths(peers)...)
	if err != nil {
		return nil, err
	}
	return c.noteSample(peers, records), nil
}

// randomPeers returns up to maxSample random ones of the peers, whose order it changes.
func randomPeers(peers []int) []int {
	if len(peers) > maxSample {
		rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
		peers = peers[:maxSample]
	}
	return peers
}

// samplePaths returns the paths of the list of live workers and of the slots of peers.
func samplePaths(peers []int) []string { return append([]string{livePath}, slotPathsOf(peers)...) }

// slotPathsOf returns the paths of the slots of workers.
func slotPathsOf(workers []int) (paths []string) {
	for _, w := range workers {
		paths = append(paths, SlotPath(w))
	}
	return paths
}

// noteSample returns the records at samplePaths as a sample, and notes the state of the list and the peers in them.
func (c *Coordinator) noteSample(peers []int, records []store.Record) *sample {
	list := records[0].Stat
	c.meet(peers, records[1:])
	c.live.count, c.live.present = int(list.NumChildren), listVersion{list.Czxid, list.Cversion}
	return &sample{records[1:], c.live.present}
}

// readings returns the clock readings that count among the records, as ReadPeerClocks says.
func (c *Coordinator) readings(records []store.Record) (readings []Reading) {
	newest := c.lastWrite // the newest known write gives the leader's present time
	var slots []Slot
	var stats []store.Stat
	for _, r := range records {
		if !r.Found {
			continue
		}
		s := parseSlot(r.Data)
		// A stopped holder wrote its record later than it read its clock.
		if s.ReportedClock == 0 || s.ClockWrong || s.Stopped || s.Released {
			continue
		}
		slots, stats = append(slots, s), append(stats, r.Stat)
		if r.Stat.Mzxid > newest.Mzxid {
			newest = r.Stat
		}
	}
	for i, s := range slots {
		fresh := newest.Mtime-stats[i].Mtime <= 3*max(s.HeartbeatMs, c.Interval.Milliseconds())
		if fresh && stats[i].Epoch() == newest.Epoch() {
			readings = append(readings, Reading{s.ReportedClock, s.ReportedClock + s.RTTMs, stats[i].Mtime})
		}
	}
	return readings
}
