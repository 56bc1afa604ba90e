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

// entry is the record of a name as an operator has read it.
type entry struct {
	name    string
	record  *record.Record // nil: there is none
	version int32
	written int64 // Unix ms of ZooKeeper's leader
}

// readEntries reads the records of names.
func (o Sequences) readEntries(ctx context.Context, names []string) ([]entry, error) {
	paths := make([]string, len(names))
	for k, name := range names {
		paths[k] = record.Path(name)
	}
	found, err := o.Store.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	all := make([]entry, len(names))
	for k, f := range found {
		if all[k].name = names[k]; !f.Found {
			continue
		}
		r, err := record.Parse(f.Data)
		if err != nil {
			return nil, record.DamagedAt(paths[k], err)
		}
		all[k].record, all[k].version, all[k].written = &r, f.Stat.Version, f.Stat.Mtime
	}
	return all, nil
}

// readSections reads the sections of all lives of a family.
func (o Sequences) readSections(ctx context.Context, family string) ([]entry, error) {
	var names []string
	for k := range positions.MaxSections {
		names = append(names, record.SectionName(family, k))
	}
	return o.readEntries(ctx, names)
}

// highest returns the highest value that a family may have issued in any of its lives, -1 for none.
func (v seen) highest() int64 {
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
func asOne(r record.Record, sections []entry) record.Record {
	var incarnations []int64
	for _, e := range sections {
		if e.record.Exists() {
			r.Next, r.Term = max(r.Next, e.record.Next), r.Term+e.record.Term
			incarnations = append(incarnations, e.record.Incarnation)
		}
	}
	if len(incarnations) == r.Sections { // else some are missing
		r.Incarnation = slices.Min(incarnations)
	}
	return r
}

// changed is what an operator writes in one transaction: the record of a name, and of a family those of its sections.
// before are the operations that come before these writes.
type changed struct {
	before   []store.Op
	own      record.Record
	sections []changedSection
}

type changedSection struct {
	entry
	after record.Record
}

// eachSection returns what change makes of all sections that exist.
func (v seen) eachSection(change func(record.Record) (record.Record, error)) (all []changedSection, err error) {
	for _, e := range v.sections {
		if e.record.Exists() {
			after, err := change(*e.record)
			if err != nil {
				return nil, err
			}
			all = append(all, changedSection{e, after})
		}
	}
	return all, nil
}

// deleteFamily returns the tombstones of a family and of its sections. That of the family knows the highest value of
// all sections, and how long nodes that are cut off may issue some.
func (v seen) deleteFamily(now int64) changed {
	st := *v.State
	all := changed{own: asOne(*v.Record, v.sections).Deleted(st, now)}
	wait := all.own.IssuableFor(st)
	all.sections, _ = v.eachSection(func(s record.Record) (record.Record, error) {
		s = s.Deleted(st, now)
		wait = max(wait, s.IssuableFor(st))
		return s, nil
	})
	all.own.WaitMs, all.own.WaitFrom = wait.Milliseconds(), st.Time
	return all
}

// setFamily returns a family and its sections after a change. The next value must not be lower than that of any
// section.
func (c Change) setFamily(v seen) (all changed, err error) {
	if _, err := c.Apply(asOne(*v.Record, v.sections), *v.State); err != nil {
		return changed{}, err
	}
	all.sections, err = v.eachSection(func(s record.Record) (record.Record, error) { return c.Apply(s, *v.State) })
	if err != nil {
		return changed{}, err
	}
	c.Next, c.NextPosition = nil, nil // sections have it
	all.own, err = c.Apply(*v.Record, *v.State)
	return all, err
}

// ApplyTo returns a sequence after the change, with all sections of a family.
func (c Change) ApplyTo(n record.Named, st record.State) (after record.Named, err error) {
	after = n
	if after.Record, err = c.Apply(n.Record, st); err != nil {
		return record.Named{}, err
	}
	after.Sections = nil
	for _, s := range n.Sections {
		if s, err = c.ApplyTo(s, st); err != nil {
			return record.Named{}, err
		}
		after.Sections = append(after.Sections, s)
	}
	return after, nil
}

// createFamily returns a new family and its sections. All of them begin above the values of all sections of earlier
// lives. lost is that of newLife.
func (o Sequences) createFamily(ctx context.Context, d Definition, v seen, lost bool) (all changed, err error) {
	if v.sections, err = o.readSections(ctx, d.Name); err != nil {
		return changed{}, err
	}
	if all.before, err = o.beforeFamily(ctx, d.Name, v.sections[:d.Sections]); err != nil {
		return changed{}, err
	}
	above := v.highest()
	begin := func(sections int, old *record.Record) (record.Record, error) {
		r := record.Fresh(d.Map, d.Settings, *v.State)
		r.Mode, r.Sections, r.Above = d.Mode, sections, above
		if old != nil {
			old = new(*old)
			old.Above = above
		}
		return newLife(r, old, lost)
	}
	if all.own, err = begin(d.Sections, v.Record); err != nil {
		return changed{}, err
	}
	for _, e := range v.sections[:d.Sections] {
		s, err := begin(0, e.record)
		if err != nil {
			return changed{}, err
		}
		all.sections = append(all.sections, changedSection{e, s})
	}
	return all, nil
}

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

// checkOuter returns a *FamilyError if name lies in the prefix of a family.
func (o Sequences) checkOuter(ctx context.Context, name string) error {
	outer, err := o.outer(ctx, name)
	for _, e := range outer {
		if e.record != nil && e.record.Sections > 0 {
			return &FamilyError{Family: e.name}
		}
	}
	return err
}

// outer reads the templates and families in whose prefixes a name lies.
func (o Sequences) outer(ctx context.Context, name string) ([]entry, error) {
	return o.readEntries(ctx, slices.DeleteFunc(positions.Templates(name), func(t string) bool { return t == name }))
}

// FindInFamily is Find of the section that issues the values of a name of a family. It returns ErrNotFound if no family
// has the name.
func (o Sequences) FindInFamily(ctx context.Context, name string) (record.Named, record.State, error) {
	outer, err := o.outer(ctx, name)
	for _, e := range outer {
		if e.record.Kind() == record.Family {
			section, _ := positions.Place(name, e.record.Sections)
			return o.Find(ctx, record.SectionName(e.name, section))
		}
	}
	return record.Named{}, record.State{}, cmp.Or(err, ErrNotFound)
}

// checkInner returns a *FamilyError if names exist, or were deleted, that lie in the prefix of a new family.
func (o Sequences) checkInner(ctx context.Context, family string) error {
	prefix := strings.TrimSuffix(family, "*")
	all, _, err := o.List(ctx, prefix)
	if err != nil {
		return err
	}
	refused := &FamilyError{Family: family}
	for _, n := range all {
		of, _, section := record.SectionOf(n.Name)
		switch {
		case n.Name == family, section && of == family, n.Name == prefix: // msg: is not a name of msg:*
		case len(refused.Within) < 3:
			refused.Within = append(refused.Within, n.Name)
		default:
			refused.More++
		}
	}
	if len(refused.Within) == 0 {
		return nil
	}
	return refused
}

// beforeFamily returns the operations that must come before the creation of a family: the creation of the directories
// of its sections, and checks that no node has created a sequence in its prefix from a template. Operators write /seq.
func (o Sequences) beforeFamily(ctx context.Context, family string, sections []entry) (ops []store.Op, err error) {
	outer, err := o.outer(ctx, family)
	if err != nil {
		return nil, err
	}
	for _, e := range outer {
		if e.record != nil {
			ops = append(ops, store.CheckOp{Path: record.Path(e.name), Version: e.version})
		}
	}
	if err := o.checkInner(ctx, family); err != nil {
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
	found, err := o.Store.GetAll(ctx, paths...)
	for k, f := range found {
		if !f.Found {
			ops = append(ops, store.CreateOp{Path: paths[k]})
		}
	}
	return ops, err
}
