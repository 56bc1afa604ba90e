package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

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
func (s Sequences) readEntries(ctx context.Context, names []string) ([]entry, error) {
	paths := make([]string, len(names))
	for k, name := range names {
		paths[k] = record.Path(name)
	}
	found, err := s.Store.GetAll(ctx, paths...)
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
func (s Sequences) readSections(ctx context.Context, family string) ([]entry, error) {
	var names []string
	for k := range positions.MaxSections {
		names = append(names, record.SectionName(family, k))
	}
	return s.readEntries(ctx, names)
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

// FindInFamily is Find of the section that issues the values of a name of a family. It returns ErrNotFound if no family
// has the name.
func (s Sequences) FindInFamily(ctx context.Context, name string) (record.Named, record.State, error) {
	outer, err := s.outer(ctx, name)
	for _, e := range outer {
		if e.record.Kind() == record.Family {
			section, _ := positions.Place(name, e.record.Sections)
			return s.Find(ctx, record.SectionName(e.name, section))
		}
	}
	return record.Named{}, record.State{}, cmp.Or(err, ErrNotFound)
}

// List returns the sequences whose names begin with prefix, and the tombstones, by name. The sections of a family are
// part of it. It returns ErrNoState if no node has served sequences yet.
func (s Sequences) List(ctx context.Context, prefix string) ([]record.Named, record.State, error) {
	st, err := s.State(ctx)
	if err != nil {
		return nil, record.State{}, err
	}
	buckets, err := s.Store.Children(ctx, record.RecordsDir)
	if errors.Is(err, store.ErrNoNode) {
		return nil, st, nil
	}
	if err != nil {
		return nil, record.State{}, err
	}
	found := make([][]record.Named, len(buckets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for k, bucket := range buckets {
		group.Go(func() (err error) {
			found[k], err = s.inBucket(ctx, record.RecordsDir+"/"+bucket, prefix)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, record.State{}, err
	}
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b record.Named) int {
		of, k, is := record.SectionOf(a.Name)
		other, l, both := record.SectionOf(b.Name)
		if is && both && of == other {
			return k - l
		}
		return strings.Compare(a.Name, b.Name)
	})
	return foldSections(all), st, nil
}

func (s Sequences) inBucket(ctx context.Context, dir, prefix string) ([]record.Named, error) {
	children, err := s.Store.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	var names, paths []string
	for _, child := range children {
		if name := record.NameOf(child); strings.HasPrefix(name, prefix) {
			names, paths = append(names, name), append(paths, dir+"/"+child)
		}
	}
	found, err := s.Store.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var all []record.Named
	for k, f := range found {
		if !f.Found {
			continue // purged meanwhile
		}
		r, err := record.Parse(f.Data)
		all = append(all, record.Named{Name: names[k], Record: r, Written: f.Stat.Mtime, Err: record.DamagedAt(paths[k], err)})
	}
	return all, nil
}

// foldSections moves sections into their families, each of which comes before its sections.
func foldSections(all []record.Named) (folded []record.Named) {
	for len(all) > 0 {
		n, end := all[0], 1
		for ; end < len(all) && n.Record.Sections > 0; end++ {
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
	var entries []entry
	for _, s := range sections {
		switch {
		case s.Err != nil:
			n.Err = s.Err
		case s.Exists():
			n.Sections, entries = append(n.Sections, s), append(entries, entry{record: &s.Record})
			if s.Written >= n.Written {
				n.Written, n.By = s.Written, s.By
			}
		}
	}
	if n.Record.Kind() == record.Family {
		n.Record = asOne(n.Record, entries)
	}
	return n
}

// Nodes returns the addresses of the nodes that may own ordered sequences. Nodes are on the list while they know an
// ordered sequence, and have an address.
func (s Sequences) Nodes(ctx context.Context) ([]string, error) {
	nodes, err := s.Store.Children(ctx, record.NodesDir)
	if errors.Is(err, store.ErrNoNode) {
		return nil, nil
	}
	return nodes, err
}

// State returns the state of all sequences. It returns ErrNoState if no node has served sequences yet, and ErrDamaged.
func (s Sequences) State(ctx context.Context) (st record.State, err error) {
	if err := s.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return record.State{}, err
	}
	found, err := s.Store.GetAll(ctx, record.ClusterPath, record.StatePath)
	if err != nil {
		return record.State{}, err
	}
	v, err := record.ParseFound(found)
	switch {
	case err != nil:
		return record.State{}, fmt.Errorf("%w: %w", record.ErrDamaged, err)
	case v.State == nil:
		return record.State{}, ErrNoState
	}
	return *v.State, nil
}

// Find returns a sequence, or its tombstone, and the state of all sequences. It returns ErrNotFound if there is none.
func (s Sequences) Find(ctx context.Context, name string) (record.Named, record.State, error) {
	v, _, err := s.look(ctx, name)
	_, hasPath := errors.AsType[record.DamagedError](err)
	switch {
	case hasPath: // of a section
		return record.Named{}, record.State{}, err
	case errors.Is(err, record.ErrDamaged), errors.Is(err, record.ErrUnknownMode):
		return record.Named{}, record.State{}, record.DamagedAt(record.Path(name), err)
	case err != nil:
		return record.Named{}, record.State{}, err
	case v.Record == nil:
		return record.Named{}, *v.State, ErrNotFound
	}
	var sections []record.Named
	for _, e := range v.sections {
		if e.record != nil {
			sections = append(sections, record.Named{Name: e.name, Record: *e.record, Written: e.written})
		}
	}
	n := record.Named{Name: name, Record: *v.Record, Written: v.Stat.Mtime}
	return withSections(n, sections), *v.State, nil
}

// outer reads the templates and families in whose prefixes a name lies.
func (s Sequences) outer(ctx context.Context, name string) ([]entry, error) {
	return s.readEntries(ctx, slices.DeleteFunc(positions.Templates(name), func(t string) bool { return t == name }))
}
