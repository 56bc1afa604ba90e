package seq

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// catalog is the sequences that a node knows. Any goroutine may call it.
type catalog struct {
	mu     sync.RWMutex
	byName map[string]*series
	all    []*series   // in the order in which the node learned of them
	gone   mode.Totals // of the series that were removed
	// last is the series that serving has found last, nil for none. It is in byName.
	last atomic.Pointer[series]
	// lookups are those of unknown names. now is Issuer.now.
	lookups lookups
	now     func() int64
	*shares // of all series
}

// serving returns the series that serves requests for a name, of which the node may not have heard before, and the
// name's lane there. Only the name of a family has one.
func (c *catalog) serving(name []byte) (s *series, lane int, err error) {
	if f := c.families.of(name); f != nil {
		if err := sequence.CheckName(name); err != nil {
			return nil, 0, &record.Refusal{Reason: record.NoSequence, Text: err.Error()}
		}
		s, lane = c.section(f, name)
		return s, lane, nil
	}
	if s := c.last.Load(); s != nil && s.Name == string(name) {
		return s, 0, nil
	}
	c.mu.RLock()
	// The catalog has templates, too, which give no values.
	if s = c.byName[string(name)]; s != nil && !positions.IsPattern(s.Name) {
		c.last.Store(s) // remove cannot run meanwhile
		c.mu.RUnlock()
		return s, 0, nil
	}
	c.mu.RUnlock()
	if err := sequence.CheckName(string(name)); err != nil {
		return nil, 0, &record.Refusal{Reason: record.NoSequence, Text: err.Error()}
	}
	if !c.lookups.allow(c.now()) {
		return nil, 0, tooManyNames()
	}
	return c.findOrAdd(string(name)), 0, nil
}

// find returns the series of a name, nil if the node does not know it.
func (c *catalog) find(name string) *series {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byName[name]
}

// findOrAdd returns the series of a name. It makes one if there is none.
func (c *catalog) findOrAdd(name string) *series {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byName[name]
	if s == nil {
		s = &series{shares: c.shares, recordReadAt: longAgoNs, foundAbsentAt: longAgoNs}
		s.Series = mode.Series{Name: name, Trace: c.trace, Host: s}
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
func (c *catalog) counted() ([]*series, mode.Totals) {
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
	dead, did := make(map[*series]bool), mode.Totals{}
	for _, s := range c.list() {
		if dies(s) {
			dead[s] = true
			s.Mu.Lock() // not under mu of the catalog: no goroutine holds both
			did.Add(s.Totals)
			s.Mu.Unlock()
		}
	}
	if len(dead) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range dead {
		if c.byName[s.Name] == s { // else replace has run
			delete(c.byName, s.Name)
		}
	}
	c.last.Store(nil)
	c.gone.Add(did)
	c.all = slices.DeleteFunc(slices.Clone(c.all), func(s *series) bool { return dead[s] })
}

// replace lets the next request for the name of a forgotten series find another one. The call of remove that has
// forgotten it may take a while to look at all others.
func (c *catalog) replace(forgotten *series) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName[forgotten.Name] == forgotten {
		delete(c.byName, forgotten.Name)
	}
	c.last.CompareAndSwap(forgotten, nil)
}

// markStale notes that the records of these names must be read. It makes a series for each, so that the node knows the
// record if ZooKeeper loses it.
func (c *catalog) markStale(names []string) {
	for _, name := range names {
		c.findOrAdd(name).markStale(true)
	}
}

// markAllStale notes that all records that the node knows must be read.
func (c *catalog) markAllStale() {
	for _, s := range c.list() {
		s.markStale(false)
	}
}

// useWithoutReading lets the node issue what an earlier process held, because ZooKeeper cannot be asked.
func (c *catalog) useWithoutReading() {
	for _, s := range c.list() {
		s.Mu.Lock()
		if m := s.stocked(); m != nil {
			m.unread = false
		}
		s.Mu.Unlock()
	}
}

// flaps reports whether a section was lost twice in a minute (O9).
func (c *catalog) flaps(now int64) bool {
	for _, s := range c.list() {
		s.Mu.Lock()
		m, ok := s.Issuing.(*ordered.Section)
		flaps := ok && m.Flaps(now)
		s.Mu.Unlock()
		if flaps {
			return true
		}
	}
	return false
}

// maxLookups is the number of unknown names that a node looks up in ZooKeeper in a second.
const maxLookups = 100

// lookups bounds how many unknown names a node looks up in ZooKeeper in a second.
type lookups struct {
	mu    sync.Mutex
	since int64 // start of the present second, ns of AtMost
	done  int
}

// allow reports whether one more name may be looked up in this second.
func (l *lookups) allow(now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.since >= int64(time.Second) {
		l.since, l.done = now, 0
	}
	l.done++
	return l.done <= maxLookups
}

// section returns the series of the section of a name, and the name's lane in it.
func (c *catalog) section(f *family, name []byte) (s *series, lane int) {
	k, lane := f.sectionAndLane(name)
	if s = f.series(k); s != nil && !s.forgotten.Load() {
		return s, lane
	}
	s = c.findOrAdd(f.section(k))
	f.setSeries(k, s)
	return s, lane
}
