package coordinator

import (
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

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

// A process remembers maxMet peers at most: twice the workers of the largest layout that people use. It remembers no
// peer whose texts are longer than maxMetText together. So all peers fit into one reply to STATUS.
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
