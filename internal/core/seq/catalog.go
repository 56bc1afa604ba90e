package seq

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/coordinator"
)

// catalog is the sequences that a node knows. Any goroutine may call it.
type catalog struct {
	mu     sync.RWMutex
	byName map[string]*series
	all    []*series // in the order in which the node met them
	gone   totals    // of the series that were removed
	// last is the series that was found last, nil for none. It is in byName.
	last atomic.Pointer[series]
	// journal keeps what the series hold over a restart, nil if nothing does. It never changes.
	journal *journal
	// relay and families are what ordered sequences share.
	relay    *relay
	families families
	trace    coordinator.Trace
	ring     func(s *series, at int64) // Issuer.wakeAt
}

// find returns the series of a name, nil if the node does not know it.
func (c *catalog) find(name []byte) *series {
	if s := c.last.Load(); s != nil && s.name == string(name) {
		return s
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := c.byName[string(name)]
	if s != nil {
		c.last.Store(s) // remove cannot run meanwhile
	}
	return s
}

// named returns the series of a name. It makes one if there is none.
func (c *catalog) named(name string) *series {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byName[name]
	if s == nil {
		s = &series{journal: c.journal, relay: c.relay, families: &c.families, ring: c.ring, readAt: longAgoNs}
		s.base = base{name: name, trace: c.trace, keeper: s}
		if c.byName == nil {
			c.byName = make(map[string]*series)
		}
		c.byName[name] = s
		c.all = append(c.all, s)
	}
	return s
}

// counted returns all series, and what those did that were removed. Each series is in one of them: a counter that had
// one twice would fall afterwards. The caller must not change the list.
func (c *catalog) counted() ([]*series, totals) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.all[:len(c.all):len(c.all)], c.gone
}

// list returns all series. The caller must not change it.
func (c *catalog) list() []*series {
	all, _ := c.counted()
	return all
}

// remove removes the series of which dies returns true.
func (c *catalog) remove(dies func(*series) bool) {
	dead, did := make(map[*series]bool), totals{}
	for _, s := range c.list() {
		if dies(s) {
			dead[s] = true
			s.mu.Lock() // not under mu of the catalog: no goroutine holds both
			did.add(s.totals)
			s.mu.Unlock()
		}
	}
	if len(dead) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range dead {
		delete(c.byName, s.name)
	}
	c.last.Store(nil)
	c.gone.add(did)
	c.all = slices.DeleteFunc(slices.Clone(c.all), func(s *series) bool { return dead[s] })
}

// absentFor is the time for which a node believes that a sequence does not exist.
const absentFor = 2 * time.Second

// forget removes the names that have no record, as far as the node knows. If they are asked for again, they
// count as unknown.
func (i *Rounds) forget() {
	now := i.now()
	if now-i.swept < int64(absentFor) {
		return
	}
	i.swept = now
	i.remove(func(s *series) bool { return s.forget(now) })
}
