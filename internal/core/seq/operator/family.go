package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// FamilyError: a name lies within the prefix of a family, and nothing else may have the name.
type FamilyError struct {
	Family string
	// Within are the first names that lie in the family's prefix already, and More is the number of further ones.
	Within []string
	More   int
}

func (e *FamilyError) Error() string {
	if len(e.Within) == 0 {
		return fmt.Sprintf("the family %s has all names with its prefix, so none of them can be created. A family "+
			"that was deleted keeps them until it is purged", e.Family)
	}
	more := ""
	if e.More > 0 {
		more = fmt.Sprintf(" and %d more", e.More)
	}
	return fmt.Sprintf("a family has all names with its prefix, and some exist: %s%s. Choose another prefix, or "+
		"delete and purge them", strings.Join(e.Within, ", "), more)
}

// readSections reads the sections of all lives of a family.
func (s Commands) readSections(ctx context.Context, family string) ([]foundRecord, error) {
	var names []string
	for k := range positions.MaxSections {
		names = append(names, record.SectionName(family, k))
	}
	return s.readRecords(ctx, names)
}

// FindInFamily is Find of the section that issues the values of a name of a family. It returns ErrNotFound if no family
// has the name.
func (s Commands) FindInFamily(ctx context.Context, name string) (record.Named, record.State, error) {
	around, err := s.enclosing(ctx, name)
	for _, e := range around {
		if e.record.Kind() == record.Family {
			section, _ := positions.SectionAndLane(name, e.record.SectionCount)
			return s.Find(ctx, record.SectionName(e.name, section))
		}
	}
	return record.Named{}, record.State{}, cmp.Or(err, ErrNotFound)
}

// enclosing reads the templates and families in whose prefixes a name lies.
func (s Commands) enclosing(ctx context.Context, name string) ([]foundRecord, error) {
	return s.readRecords(ctx, slices.DeleteFunc(positions.Patterns(name), func(t string) bool { return t == name }))
}

// checkEnclosing returns a *FamilyError if name lies in the prefix of a family.
func (s Commands) checkEnclosing(ctx context.Context, name string) error {
	around, err := s.enclosing(ctx, name)
	for _, e := range around {
		if e.record != nil && e.record.SectionCount > 0 {
			return &FamilyError{Family: e.name}
		}
	}
	return err
}

// checkEnclosed returns a *FamilyError if names exist, or were deleted, that lie in the prefix of a new family.
func (s Commands) checkEnclosed(ctx context.Context, family string) error {
	prefix := strings.TrimSuffix(family, "*")
	all, _, err := s.List(ctx, prefix)
	if err != nil {
		return err
	}
	taken := &FamilyError{Family: family}
	for _, n := range all {
		of, _, section := record.SectionOf(n.Name)
		switch {
		case n.Name == family, section && of == family, n.Name == prefix: // msg: is not a name of msg:*
		case len(taken.Within) < 3:
			taken.Within = append(taken.Within, n.Name)
		default:
			taken.More++
		}
	}
	if len(taken.Within) == 0 {
		return nil
	}
	return taken
}

// beforeFamily returns the operations that must come before the creation of a family: the creation of the directories
// of its sections, and checks that no node has created a sequence in its prefix from a template. Other operators need
// no check: each command writes /seq, so one of two at once fails and is tried again.
func (s Commands) beforeFamily(ctx context.Context, family string, sections []foundRecord) (ops []store.Op, err error) {
	around, err := s.enclosing(ctx, family)
	if err != nil {
		return nil, err
	}
	for _, e := range around {
		if e.record != nil {
			ops = append(ops, store.CheckOp{Path: record.Path(e.name), Version: e.version})
		}
	}
	if err := s.checkEnclosed(ctx, family); err != nil {
		return nil, err
	}
	paths := []string{}
	for _, e := range sections {
		if path := record.BucketPath(e.name); path != record.BucketPath(family) { // commit creates that of the family
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	found, err := s.Store.GetAll(ctx, paths...)
	for k, f := range found {
		if !f.Found {
			ops = append(ops, store.CreateOp{Path: paths[k]})
		}
	}
	return ops, err
}

// createFamily returns a new family and its sections. All of them begin above the values of all sections of earlier
// lives. lost is that of newLife.
func (s Commands) createFamily(ctx context.Context, d Definition, v view, lost bool) (all writes, err error) {
	if v.sections, err = s.readSections(ctx, d.Name); err != nil {
		return writes{}, err
	}
	if all.before, err = s.beforeFamily(ctx, d.Name, v.sections[:d.Sections]); err != nil {
		return writes{}, err
	}
	above := v.highest()
	begin := func(sections int, old *record.Record) (record.Record, error) {
		r := record.Fresh(d.Map, d.Settings, *v.State)
		r.Mode, r.SectionCount, r.Above = d.Mode, sections, above
		if old != nil {
			old = new(*old)
			old.Above = above
		}
		return newLife(r, old, lost)
	}
	if all.own, err = begin(d.Sections, v.Record); err != nil {
		return writes{}, err
	}
	for _, e := range v.sections[:d.Sections] {
		section, err := begin(0, e.record)
		if err != nil {
			return writes{}, err
		}
		all.sections = append(all.sections, sectionWrite{e, section})
	}
	return all, nil
}

// changeSections returns what change makes of all sections that exist.
func (v view) changeSections(change func(record.Record) (record.Record, error)) (all []sectionWrite, err error) {
	for _, e := range v.sections {
		if e.record.Exists() {
			after, err := change(*e.record)
			if err != nil {
				return nil, err
			}
			all = append(all, sectionWrite{e, after})
		}
	}
	return all, nil
}

// setFamily returns a family and its sections after a change. The next value must not be lower than that of any
// section.
func (c Change) setFamily(v view) (all writes, err error) {
	if _, err := c.Apply(asOne(*v.Record, v.sections), *v.State); err != nil {
		return writes{}, err
	}
	all.sections, err = v.changeSections(func(s record.Record) (record.Record, error) { return c.Apply(s, *v.State) })
	if err != nil {
		return writes{}, err
	}
	c.Next, c.NextPosition = nil, nil // sections have it
	all.own, err = c.Apply(*v.Record, *v.State)
	return all, err
}

// deleteFamily returns the tombstones of a family and of its sections. That of the family knows the highest value of
// all sections, and how long nodes that are cut off may issue some.
func (v view) deleteFamily(now int64) writes {
	st := *v.State
	all := writes{own: asOne(*v.Record, v.sections).Deleted(st, now)}
	wait := all.own.IssuableFor(st)
	all.sections, _ = v.changeSections(func(s record.Record) (record.Record, error) {
		s = s.Deleted(st, now)
		wait = max(wait, s.IssuableFor(st))
		return s, nil
	})
	all.own.WaitMs, all.own.WaitFrom = wait.Milliseconds(), st.Time
	return all
}

// highest returns the highest value that a family may have issued in any of its lives, -1 for none.
func (v view) highest() int64 {
	highest := int64(-1)
	if v.Record != nil {
		highest = v.Record.HighestIssued()
	}
	for _, e := range v.sections {
		if e.record != nil {
			highest = max(highest, e.record.HighestIssued())
		}
	}
	return highest
}

// asOne returns the record of a family with what its sections have together: the furthest next position, the number of
// ownerships, and the earliest incarnation.
func asOne(r record.Record, sections []foundRecord) record.Record {
	var incarnations []int64
	for _, e := range sections {
		if e.record.Exists() {
			r.Next, r.Term = max(r.Next, e.record.Next), r.Term+e.record.Term
			incarnations = append(incarnations, e.record.Incarnation)
		}
	}
	if len(incarnations) == r.SectionCount { // else some are missing
		r.Incarnation = slices.Min(incarnations)
	}
	return r
}

// foldSections moves sections into their families, each of which comes before its sections.
func foldSections(all []record.Named) (folded []record.Named) {
	for len(all) > 0 {
		n, end := all[0], 1
		for ; end < len(all) && n.Record.SectionCount > 0; end++ {
			if of, _, is := record.SectionOf(all[end].Name); !is || of != n.Name {
				break
			}
		}
		folded, all = append(folded, withSections(n, all[1:end])), all[end:]
	}
	return folded
}

// withSections returns a family with those of its sections that exist. If one of them is damaged, the family is.
func withSections(n record.Named, sections []record.Named) record.Named {
	var entries []foundRecord
	for _, s := range sections {
		switch {
		case s.Err != nil:
			n.Err = s.Err
		case s.Exists():
			n.Sections, entries = append(n.Sections, s), append(entries, foundRecord{record: &s.Record})
			if s.WrittenAt >= n.WrittenAt {
				n.WrittenAt, n.WrittenBy = s.WrittenAt, s.WrittenBy
			}
		}
	}
	if n.Record.Kind() == record.Family {
		n.Record = asOne(n.Record, entries)
	}
	return n
}
