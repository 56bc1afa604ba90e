package seq

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/flaked/flaked/internal/core/positions"
)

// A family is an ordered sequence for each name that begins with a prefix. Its names have no records. Each belongs to a
// section, which has one, and which is a series on the nodes: see positions.Place.

// sectionName returns the name of a section of a family. No client can ask for it: names have no *.
func sectionName(family string, k int) string { return family + strconv.Itoa(k) }

// family is a family as a node knows it.
type family struct {
	name     string // with the *
	prefix   string
	sections []atomic.Pointer[series]
}

// families are those that a node knows. Any goroutine may read all.
type families struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*family]
	// last is what the node knew last of the records of families, also of those that were deleted, and changed are the
	// sections of those whose records have changed since. Both are guarded by mu.
	last    map[string]familyRecord
	changed []string
}

type familyRecord struct {
	sections int
	gen      int64
}

// learn notes a record of a family that was read, nil for none.
func (f *families) learn(name string, r *Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, now := f.last[name], familyRecord{}
	if r != nil {
		now = familyRecord{max(r.Sections, was.sections), r.Gen} // those of earlier lives are purged with it
	}
	if was == now {
		return
	}
	for k := range max(was.sections, now.sections) {
		f.changed = append(f.changed, sectionName(name, k))
	}
	if delete(f.last, name); now.sections > 0 {
		if f.last == nil {
			f.last = make(map[string]familyRecord)
		}
		f.last[name] = now
	}
}

// popChanged returns the sections that must be read, each once.
func (f *families) popChanged() (sections []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sections, f.changed = f.changed, nil
	return sections
}

// of returns the family of a name, nil if it belongs to none. No prefix begins with another one.
func (f *families) of(name []byte) *family {
	all := f.all.Load()
	if all == nil {
		return nil
	}
	for _, one := range *all {
		if len(name) > len(one.prefix) && string(name[:len(one.prefix)]) == one.prefix {
			return one
		}
	}
	return nil
}

// set notes what the node knows of the record with this name: a family of this many sections, or none for 0.
func (f *families) set(name string, sections int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var others []*family
	if all := f.all.Load(); all != nil {
		for _, one := range *all {
			if one.name != name {
				others = append(others, one)
			} else if len(one.sections) == sections {
				return
			}
		}
	}
	if sections > 0 {
		others = append(others, &family{name, strings.TrimSuffix(name, "*"), make([]atomic.Pointer[series], sections)})
	}
	f.all.Store(&others)
}

// know takes over a record, nil for none.
func (f *families) know(name string, r *Record) {
	if f == nil || !positions.IsTemplate(name) {
		return
	}
	sections := 0
	if r.Kind() == Family {
		sections = r.Sections
	}
	f.set(name, sections)
	f.learn(name, r)
}

// section returns the series of the section of a name, and the name's lane in it.
func (c *catalog) section(f *family, name []byte) (s *series, lane int) {
	k, lane := positions.Place(name, len(f.sections))
	if s = f.sections[k].Load(); s != nil && !s.forgotten.Load() {
		return s, lane
	}
	s = c.named(sectionName(f.name, k))
	f.sections[k].Store(s)
	return s, lane
}
