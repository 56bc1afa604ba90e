package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Peer is another node that held a worker when this process last read its record. ZooKeeper may have lost that record
// since: then only peers know where the node can be asked.
type Peer struct {
	Node    string `json:"node"` // its identity, a UUID
	Name    string `json:"name"`
	Address string `json:"address"` // several are separated by commas
	Host    string `json:"host"`
	SeenMs  int64  `json:"seen_ms"` // when its record was read, Unix ms, to within metAgain
}

// metAgain is the time after which a peer that has not changed is noted again.
const metAgain = time.Hour

// maxMet bounds how many peers a process remembers: twice the workers of the largest layout that people use.
const maxMet = 2048

// met are the peers of which this process has read a record.
type met struct {
	byNode map[string]Peer
	list   []Peer // nil: byNode has changed
}

// meet notes the holders of these slots. Nothing is decided by them.
func (c *Coordinator) meet(slots []store.Record) {
	now := c.Now()
	for _, r := range slots {
		if !r.Found {
			continue
		}
		s := parseSlot(r.Data)
		if s.Node == "" || s.Stopped || s.Released || s.Address == "" {
			continue
		}
		p := Peer{s.Node, s.Name, s.Address, s.Host, now}
		old, known := c.met.byNode[s.Node]
		if old.SeenMs = now; known && old == p && now-c.met.byNode[s.Node].SeenMs < metAgain.Milliseconds() ||
			!known && len(c.met.byNode) >= maxMet {
			continue
		}
		if c.met.byNode == nil {
			c.met.byNode = make(map[string]Peer)
		}
		c.met.byNode[s.Node], c.met.list = p, nil
	}
}

// Met returns the peers whose lease may still run: their records were read within the longest lease. The caller must
// not change the list.
func (c *Coordinator) Met() []Peer {
	if c.met.list != nil {
		return c.met.list
	}
	since := c.Now() - c.mine.LeaseMs - metAgain.Milliseconds()
	list := []Peer{}
	for node, p := range c.met.byNode {
		if p.SeenMs < since {
			delete(c.met.byNode, node)
			continue
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Node, b.Node))
	})
	c.met.list = list
	return list
}
