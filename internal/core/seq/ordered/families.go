package ordered

import (
	"strings"
	"sync"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// Family is a family as a node knows it. Its names have no records: each belongs to a section, which has one, and which
// is a sequence of type S on the node.
type Family[S any] struct {
	Name     string // with the *
	prefix   string
	sections []atomic.Pointer[S] // none: it was deleted
	// most is the greatest number of sections in any of its lives, which are purged together, and gen the Gen of its
	// record.
	most int
	gen  int64
}

// Families are those that a node knows. Any goroutine may call its methods.
type Families[S any] struct {
	mu  sync.Mutex // guards writes of all, and changed
	all atomic.Pointer[[]*Family[S]]
	// changed are the sections of families whose records have changed.
	changed []string
}

// Know takes over the record of a name that ends with *, nil for none. It is one of these:
//
//   - A family. Its sections answer the names.
//   - The tombstone of a family, or a template if the node missed the purge between the two. No name belongs to it. Its
//     sections, also those of earlier lives, are read when this record has changed: they have tombstones of their own.
//   - A template or its tombstone, and the name was never a family: nothing is noted.
//   - None. The name was purged, and its sections with it: they are read once more.
func (f *Families[S]) Know(name string, r *record.Record) {
	if f == nil || !positions.IsTemplate(name) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was, others := new(Family[S]), []*Family[S](nil)
	for _, one := range f.list() {
		if one.Name == name {
			was = one
		} else {
			others = append(others, one)
		}
	}
	now := &Family[S]{Name: name, prefix: strings.TrimSuffix(name, "*")}
	if r != nil {
		now.most, now.gen = max(r.Sections, was.most), r.Gen
	}
	if now.most != was.most || now.gen != was.gen {
		for k := range max(was.most, now.most) {
			f.changed = append(f.changed, record.SectionName(name, k))
		}
	}
	if r.Kind() == record.Family {
		if now.sections = was.sections; len(now.sections) != r.Sections {
			now.sections = make([]atomic.Pointer[S], r.Sections)
		}
	}
	if now.most > 0 {
		others = append(others, now)
	}
	f.all.Store(&others)
}

func (f *Families[S]) list() []*Family[S] {
	if all := f.all.Load(); all != nil {
		return *all
	}
	return nil
}

// PopChanged returns the sections that must be read, each once.
func (f *Families[S]) PopChanged() (sections []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sections, f.changed = f.changed, nil
	return sections
}

// Of returns the family of a name, nil if it belongs to none. No prefix begins with another one.
func (f *Families[S]) Of(name []byte) *Family[S] {
	for _, one := range f.list() {
		if len(name) > len(one.prefix) && string(name[:len(one.prefix)]) == one.prefix && len(one.sections) > 0 {
			return one
		}
	}
	return nil
}

// Place returns the number of the section that issues the values of a name, and the name's lane in it.
func (f *Family[S]) Place(name []byte) (section, lane int) {
	return positions.Place(name, len(f.sections))
}

// Sections returns the number of sections.
func (f *Family[S]) Sections() int { return len(f.sections) }

// Section returns the name of a section.
func (f *Family[S]) Section(k int) string { return record.SectionName(f.Name, k) }

// Series returns what was noted of a section, nil for nothing.
func (f *Family[S]) Series(k int) *S { return f.sections[k].Load() }

// Note notes the sequence that a section is.
func (f *Family[S]) Note(k int, s *S) { f.sections[k].Store(s) }
