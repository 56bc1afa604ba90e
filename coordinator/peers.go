package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// samplePeers is the most peers whose clocks are read at once. If a thousand nodes each read a thousand records, that
// would load ZooKeeper more than their heartbeats do.
const samplePeers = 8

// listsAgain is the age of a list that has changed, in heartbeats, at which a node reads it again. Somebody must have
// met each node, or nobody knows where to ask it if ZooKeeper loses its record.
const listsAgain = 20

// roster has the workers that were live when they were last listed. The list has an entry for each node of the cluster,
// so a node does not read it at every heartbeat.
type roster struct {
	listed  bool
	at      int64       // when, ns of Elapsed.AtLeast
	workers []int       // ascending
	version listVersion // zero: not known
	// live is the number of live workers, and present the version of the list, when a heartbeat or Peers last looked.
	live    int
	present listVersion
	// fewReadings: fewer than half of the records read last had a reading.
	fewReadings bool
	// sampled has the peers' records that the heartbeat has read, for the next call of Peers. nil: none.
	sampled *sample
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

// Peers returns the clock readings of up to eight live peers. own is our worker, -1 when we have none. Peers leaves out
// peers that refuse because of their own clock. It skips reports that are more than three heartbeats older than the
// newest write it knows, and reports of another epoch of the leader.
//
// While this node waits for its peers, Peers reads the records of those that it waits for: see Hearing.
//
// After a heartbeat, which reads the records of peers together with its own, Peers reads nothing more. Otherwise it
// takes one round trip, two the first time, and two more if it reads the list again. It does that if the list has
// changed, and there are at most eight peers, few of them have readings, or the list is old. With few peers the list is
// short, and each reading counts.
//
// The records are then older by a round trip than the write that they are compared with. No rule rests on that: a
// reading may be as old as three heartbeats.
func (c *Coordinator) Peers(ctx context.Context, own int) ([]Reading, error) {
	if c.Waits() > 0 {
		if err := c.hearPeers(ctx); err != nil {
			return nil, err
		}
	}
	first := !c.roster.listed
	if first {
		if err := c.list(ctx, listVersion{}); err != nil {
			return nil, err
		}
	}
	peers := c.known(own)
	old := c.Elapsed.AtLeast()-c.roster.at >= int64(listsAgain*c.Interval)
	enough := len(peers) > samplePeers && !c.roster.fewReadings && !old
	found := c.roster.sampled
	var err error
	if c.roster.sampled = nil; found == nil {
		found, err = c.ask(ctx, peers)
	}
	if err == nil && !first && !enough && found.version != c.roster.version {
		if err = c.list(ctx, found.version); err == nil {
			found, err = c.ask(ctx, c.known(own))
		}
	}
	if err != nil {
		return nil, err
	}
	readings := c.readings(found.records)
	c.roster.fewReadings = 2*len(readings) < len(found.records)
	c.seen = PeersSeen{Live: c.roster.live, RelyIn: c.proof.hearing.first.Session, RelyAfter: c.Waits(),
		OthersTake: c.proof.othersTake()}
	return readings, nil
}

// PeersSeen has what the last call of Peers has found out about the other nodes.
type PeersSeen struct {
	// Live is the number of connected nodes of the cluster. 0: not known.
	Live int
	// RelyIn is the ZooKeeper session in which the node waits until its peers have compared their records: see Hearing.
	// RelyAfter is the time until the node must ask again. 0: it relies on ZooKeeper's data in that session.
	RelyIn    int64
	RelyAfter time.Duration
	// OthersTake: a peer may take values of named sequences, as far as this node has read. Then this node may leave
	// them to that peer for a while, before it says that it is ready. It is true until the node has read all slots in
	// its session, and false if more than manyTake take values.
	OthersTake bool
}

// list reads the list of live workers. version is the list's version before that.
func (c *Coordinator) list(ctx context.Context, version listVersion) error {
	live, err := liveWorkers(ctx, c.Store)
	if err == nil {
		workers := slices.Sorted(maps.Keys(live))
		c.roster = roster{listed: true, at: c.Elapsed.AtLeast(), workers: workers, version: version, live: len(live),
			present: c.roster.present}
	}
	return err
}

// known returns the workers on the list without our own.
func (c *Coordinator) known(own int) []int {
	return slices.DeleteFunc(slices.Clone(c.roster.workers), func(w int) bool { return w == own })
}

// ask reads the records of up to samplePeers random peers, and the present version of the list.
func (c *Coordinator) ask(ctx context.Context, peers []int) (*sample, error) {
	peers = somePeers(peers)
	records, err := c.Store.GetAll(ctx, samplePaths(peers)...)
	if err != nil {
		return nil, err
	}
	return c.sampled(peers, records), nil
}

// somePeers returns up to samplePeers random ones of the peers, whose order it changes.
func somePeers(peers []int) []int {
	if len(peers) > samplePeers {
		rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
		peers = peers[:samplePeers]
	}
	return peers
}

// samplePaths returns the paths of the list of live workers and of the slots of peers.
func samplePaths(peers []int) []string { return append([]string{livePath}, pathsOf(peers)...) }

// pathsOf returns the paths of the slots of workers.
func pathsOf(workers []int) (paths []string) {
	for _, w := range workers {
		paths = append(paths, SlotPath(w))
	}
	return paths
}

// sampled returns what the records at samplePaths show, and notes the state of the list.
func (c *Coordinator) sampled(peers []int, records []store.Record) *sample {
	list := records[0].Stat
	c.meet(peers, records[1:])
	c.roster.live, c.roster.present = int(list.Count), listVersion{list.Czxid, list.Children}
	return &sample{records[1:], c.roster.present}
}

// readings returns the clock readings that count among the records, as Peers says.
func (c *Coordinator) readings(records []store.Record) (readings []Reading) {
	newest := c.latest // the newest known write gives the leader's present time
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

// lock identifies a live lock of ours. While its session goes on, the lock disappears only with a change of the list of
// live workers, so that it need not be read at every heartbeat.
type lock struct {
	worker  int
	session int64
	list    listVersion
}

// lockOf returns the live lock that a worker of ours should have now.
func (c *Coordinator) lockOf(worker int) lock {
	return lock{worker, c.Store.SessionID(), c.roster.present}
}

// Show makes the live lock of our slot one of the present session. It replaces the lock of another session: of an earlier
// one of ours, or of a holder whose lease has run out. Once our confirmed lease has run out, Show deletes the lock
// instead: while it exists, no other node can take the slot. The slot's record decides who holds the slot, the lock
// decides nothing.
func (c *Coordinator) Show(ctx context.Context) error {
	p := c.proof
	if p.EverConfirmed && c.Now() >= p.LeaseUntil {
		return c.deleteLiveLock(ctx, p.Worker, "")
	}
	if c.locked == c.lockOf(p.Worker) {
		return nil
	}
	path := lockPath(p.Worker)
	data := store.Marshal(ticket{Node: p.Node, Labels: c.Labels})
	for {
		want := c.lockOf(p.Worker)
		_, stat, err := c.Store.Get(ctx, path)
		switch {
		case err == nil && stat.Owner == want.session:
			c.locked = want
			return nil
		// The lock is not noted in c.locked: it changes the list, and the next heartbeat looks at both again.
		case err == nil: // in one transaction, so that the node counts as live all the time
			err = c.Store.Multi(ctx, store.DeleteOp{Path: path, Version: stat.Version},
				store.CreateOp{Path: path, Data: data, Ephemeral: true})
		case errors.Is(err, store.ErrNoNode):
			err = create(ctx, c.Store, path, data, store.Ephemeral)
		}
		if !mustReread(err) {
			return err
		}
	}
}

// dropStrayLock deletes the live lock of a slot that we were fenced from. While the lock exists no node can take the slot, not
// even this one.
func (c *Coordinator) dropStrayLock(ctx context.Context) error {
	if c.strayLock < 0 {
		return nil
	}
	err := c.deleteLiveLock(ctx, c.strayLock, "")
	if err == nil {
		c.strayLock = -1
	}
	return err
}

// deleteLiveLock deletes the live lock if it belongs to the present session, or to an earlier one of the given node: a
// killed process leaves its lock until its session expires.
func (c *Coordinator) deleteLiveLock(ctx context.Context, worker int, node string) error {
	c.locked = lock{}
	path := lockPath(worker)
	data, stat, err := c.Store.Get(ctx, path)
	if err == nil && (stat.Owner == c.Store.SessionID() || node != "" && parseTicket(data).Node == node) {
		err = c.Store.Delete(ctx, path, stat.Version)
	}
	if errors.Is(err, store.ErrNoNode) {
		return nil
	}
	return err
}

// Peer is another node that held a worker when this process, or an earlier one of its state directory, last read its
// record. ZooKeeper may have lost that record since: then only peers know where the node can be asked.
type Peer struct {
	Node    string `json:"node"` // its identity, a UUID
	Worker  int    `json:"worker"`
	Term    int64  `json:"term"`
	Name    string `json:"name"`
	Address string `json:"address"` // several are separated by commas
	Host    string `json:"host"`
	SeenMs  int64  `json:"seen_ms"` // when its record was last read, Unix ms
}

// A process remembers maxMet peers at most: twice the workers of the largest layout that people use. One whose texts
// are longer than maxMetText is too odd to be remembered. So all of them fit into a reply.
const (
	maxMet     = 2048
	maxMetText = 1500
)

// met are the peers of which this process has read a record, or which it has remembered. The last seen come last. Any
// goroutine may use it. Nothing is decided by it: it tells operators whom to ask.
type met struct {
	mu      sync.Mutex
	cluster string
	lease   int64 // the longest of the cluster, ms
	peers   []Peer
}

// join forgets the peers of another cluster.
func (m *met) join(cl Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease = cl.LeaseMs; m.cluster != cl.UUID {
		m.cluster, m.peers = cl.UUID, nil
	}
}

// note takes over what the record of a worker shows. An older one, which was restored, removes no newer holder: its
// term is lower.
func (m *met) note(worker int, s Slot, now int64) {
	p := Peer{s.Node, worker, s.Term, s.Name, s.Address, s.Host, now}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peers = slices.DeleteFunc(m.peers, func(old Peer) bool {
		return old.Worker == worker && (old.Term < p.Term || old.Term == p.Term && old.Node == p.Node)
	})
	texts := len(p.Node) + len(p.Name) + len(p.Address) + len(p.Host)
	if !(Entry{Slot: s}).Holds() || p.Address == "" || texts > maxMetText {
		return
	}
	if len(m.peers) >= maxMet {
		m.peers = slices.Delete(m.peers, 0, 1)
	}
	m.peers = append(m.peers, p)
}

// meet notes the holders of workers, by their slots.
func (c *Coordinator) meet(workers []int, slots []store.Record) {
	now := c.Now()
	for k, r := range slots {
		if r.Found {
			c.met.note(workers[k], parseSlot(r.Data), now)
		}
	}
}

// A node remembers a peer for the longest lease and metMargin. In a large cluster it reads each record only rarely.
const metMargin = time.Hour

// Met returns the peers whose lease may still run. Any goroutine may call it.
func (c *Coordinator) Met() []Peer {
	c.met.mu.Lock()
	defer c.met.mu.Unlock()
	since := c.Now() - c.met.lease - metMargin.Milliseconds()
	return slices.DeleteFunc(slices.Clone(c.met.peers), func(p Peer) bool { return p.SeenMs < since })
}

// Remember takes over the peers that an earlier process has met in a cluster. Call it before Join.
func (c *Coordinator) Remember(cluster string, peers []Peer) {
	c.met.mu.Lock()
	defer c.met.mu.Unlock()
	c.met.cluster, c.met.peers = cluster, slices.Clone(peers[max(0, len(peers)-maxMet):])
}

// Entry is one slot as it stands in ZooKeeper.
type Entry struct {
	Worker int
	Slot   Slot
	Stat   store.Stat
	// Live: its holder has a session.
	Live bool
	// Absent: the record is missing though the slot has been used.
	Absent bool
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

// ReadSlots reads every slot that has ever been used.
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
		if e.Absent = worker <= cl.HighestSlot; e.Absent {
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
