package seq

import (
	"strings"
	"sync"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// family is a family as a node knows it: see internal/core/positions/family.go.
type family struct {
	name     string // with the *
	prefix   string
	sections []atomic.Pointer[series] // none: it was deleted
	// most is the greatest number of sections in any of its lives, which are purged together, and writeCount that of
	// its record.
	most       int
	writeCount int64
}

// families are those that a node knows. Any goroutine may call its methods.
type families struct {
	mu  sync.Mutex // guards writes of all, and changed
	all atomic.Pointer[[]*family]
	// changed are the sections of families whose records have changed.
	changed []string
}

// update applies the record of a name that ends with *, nil for none. It is one of these:
//
//   - A family. Its sections answer the names.
//   - The tombstone of a family, or a template if the node missed the purge between the two. No name belongs to it. Its
//     sections, also those of earlier lives, are read when this record has changed: they have tombstones of their own.
//   - A template or its tombstone, and the name was never a family: nothing is noted.
//   - None. The name was purged, and its sections with it: they are read once more.
func (f *families) update(name string, r *record.Record) {
	if f == nil || !positions.IsPattern(name) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was, others := new(family), []*family(nil)
	for _, one := range f.list() {
		if one.name == name {
			was = one
		} else {
			others = append(others, one)
		}
	}
	now := &family{name: name, prefix: strings.TrimSuffix(name, "*")}
	if r != nil {
		now.most, now.writeCount = max(r.SectionCount, was.most), r.WriteCount
	}
	if now.most != was.most || now.writeCount != was.writeCount {
		for k := range max(was.most, now.most) {
			f.changed = append(f.changed, record.SectionName(name, k))
		}
	}
	if r.Kind() == record.Family {
		if now.sections = was.sections; len(now.sections) != r.SectionCount {
			now.sections = make([]atomic.Pointer[series], r.SectionCount)
		}
	}
	if now.most > 0 {
		others = append(others, now)
	}
	f.all.Store(&others)
}

func (f *families) list() []*family {
	if all := f.all.Load(); all != nil {
		return *all
	}
	return nil
}

// popChanged returns the sections that must be read, and forgets them.
func (f *families) popChanged() (sections []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sections, f.changed = f.changed, nil
	return sections
}

// of returns the family of a name, nil if it belongs to none. No prefix begins with another one.
func (f *families) of(name []byte) *family {
	for _, one := range f.list() {
		if len(name) > len(one.prefix) && string(name[:len(one.prefix)]) == one.prefix && len(one.sections) > 0 {
			return one
		}
	}
	return nil
}

// sectionAndLane returns the number of the section that issues the values of a name, and the name's lane in it.
func (f *family) sectionAndLane(name []byte) (section, lane int) {
	return positions.SectionAndLane(name, len(f.sections))
}

// count returns the number of sections.
func (f *family) count() int { return len(f.sections) }

// section returns the name of a section.
func (f *family) section(k int) string { return record.SectionName(f.name, k) }

// series returns what was noted of a section, nil for nothing.
func (f *family) series(k int) *series { return f.sections[k].Load() }

// setSeries notes the series of a section.
func (f *family) setSeries(k int, s *series) { f.sections[k].Store(s) }
