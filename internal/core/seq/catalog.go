package seq

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
)

// catalog is the sequences that a node knows. Any goroutine may call it.
type catalog struct {
	mu     sync.RWMutex
	byName map[string]*series
	all    []*series   // in the order in which the node met them
	gone   mode.Totals // of the series that were removed
	// last is the series that was found last, nil for none. It is in byName.
	last atomic.Pointer[series]
	// journal keeps what the series hold over a restart, nil if nothing does. It never changes.
	journal *journal
	// node and families are what ordered sequences share.
	node     *ordered.Node
	families families
	trace    coordinator.Trace
	ring     func(s *series, at int64) // Issuer.wakeAt
}

// find returns the series of a name, nil if the node does not know it.
func (c *catalog) find(name []byte) *series {
	if s := c.last.Load(); s != nil && s.Name == string(name) {
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
		s = &series{journal: c.journal, node: c.node, families: &c.families, ring: c.ring, readAt: longAgoNs,
			absentAt: longAgoNs}
		s.Series = mode.Series{Name: name, Trace: c.trace, Keeper: s}
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
		delete(c.byName, s.Name)
	}
	c.last.Store(nil)
	c.gone.Add(did)
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

// section returns the series of the section of a name, and the name's lane in it.
func (c *catalog) section(f *family, name []byte) (s *series, lane int) {
	k, lane := f.place(name)
	if s = f.series(k); s != nil && !s.forgotten.Load() {
		return s, lane
	}
	s = c.named(f.section(k))
	f.note(k, s)
	return s, lane
}

// alarms are the times at which Round must look at series. With 100,000 sequences a round must not look at each of them
// whenever one has run out of values. Any goroutine may use it.
type alarms struct {
	mu  sync.Mutex
	all []*series // those that have an alarm
	// armed is the earliest of them when Run last began to wait, math.MaxInt64 before.
	armed int64
}

// alarm is a time, ns of AtMost, 0 for none. That of a renewal also rings when the alarm of another
// renewal does, from the time from on. Else from and at are the same.
type alarm struct{ from, at int64 }

// wakeAt makes Round look at a series at this time, ns of AtMost.
func (i *Issuer) wakeAt(s *series, at int64) {
	if i.alarms.set(s, alarm{at, at}) {
		i.Wake()
	}
}

// set sets the alarm of a series, if new is earlier than the alarm that is set. A series has no more than one. set
// reports whether Run may sleep beyond new. A round need not care: Run arms the alarms after it, before it sleeps.
func (a *alarms) set(s *series, new alarm) (early bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.alarm.at == 0 {
		a.all = append(a.all, s)
	}
	if s.alarm.at == 0 || new.at < s.alarm.at {
		s.alarm = new
	}
	return new.at < a.armed
}

// rings removes and returns the series whose time has come, and those that may ring together with them.
func (a *alarms) rings(now int64) (due []*series) {
	a.mu.Lock()
	defer a.mu.Unlock()
	renews := slices.ContainsFunc(a.all, func(s *series) bool { return s.alarm.from < s.alarm.at && s.alarm.at <= now })
	a.all = slices.DeleteFunc(a.all, func(s *series) bool {
		if s.alarm.at > now && !(renews && s.alarm.from <= now) {
			return false
		}
		s.alarm = alarm{}
		due = append(due, s)
		return true
	})
	return due
}

// arm returns the time until the first alarm, most at most.
func (a *alarms) arm(now int64, most time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armed = now + int64(most)
	for _, s := range a.all {
		a.armed = min(a.armed, s.alarm.at)
	}
	return max(0, time.Duration(a.armed-now))
}

// nextAlarm makes Round look at a series when it must.
func (i *Rounds) nextAlarm(s *series) {
	now := i.now()
	s.Mu.Lock()
	next := alarm{s.LookAt, s.LookAt}
	switch {
	case s.LookAt != 0 && s.owned() != nil:
		next.at = max(s.LookAt, s.NotBefore, now+1) // a slow write may have left no time until the next one
		next.from = next.at - int64(s.Known.Hold()/6)
	case s.NotBefore > now:
		next.from, next.at = s.NotBefore, s.NotBefore
	}
	slowAt := int64(0)
	if m, ok := s.Mode.(*ordered.Section); ok { // nextBatch has set this alarm, but an earlier one may have replaced it
		slowAt = m.SlowAt()
	}
	s.Mu.Unlock()
	// One of them may be 0 or past, and does not count. Of two that do, set keeps the earlier one.
	for _, one := range []alarm{next, {slowAt, slowAt}} {
		if one.at > now {
			i.alarms.set(s, one)
		}
	}
}
