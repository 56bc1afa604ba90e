package seq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/core/store"
)

// Named is a record with its name. That of a family has the furthest next position of its sections, and the number of
// all their ownerships as Term.
type Named struct {
	Name string
	Record
	// Sections are those of a family, by their numbers. Those that ZooKeeper has lost are missing.
	Sections []Named
	// Written is when the record was written last, Unix ms of ZooKeeper's leader.
	Written int64
	// Err is ErrDamaged or ErrUnknownMode if the record cannot be used. Record is empty then.
	Err error
}

// List returns the sequences whose names begin with prefix, and the tombstones, by name. The sections of a family are
// part of it. It returns ErrNoState if no node has served sequences yet.
func (o Operator) List(ctx context.Context, prefix string) ([]Named, State, error) {
	st, err := o.State(ctx)
	if err != nil {
		return nil, State{}, err
	}
	buckets, err := o.Store.Children(ctx, recordsDir)
	if errors.Is(err, store.ErrNoNode) {
		return nil, st, nil
	}
	if err != nil {
		return nil, State{}, err
	}
	found := make([][]Named, len(buckets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for k, bucket := range buckets {
		group.Go(func() (err error) {
			found[k], err = o.inBucket(ctx, recordsDir+"/"+bucket, prefix)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, State{}, err
	}
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b Named) int {
		of, k, is := SectionOf(a.Name)
		other, l, both := SectionOf(b.Name)
		if is && both && of == other {
			return k - l
		}
		return strings.Compare(a.Name, b.Name)
	})
	return foldSections(all), st, nil
}

func (o Operator) inBucket(ctx context.Context, dir, prefix string) ([]Named, error) {
	children, err := o.Store.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	var names, paths []string
	for _, child := range children {
		if name := nameOf(child); strings.HasPrefix(name, prefix) {
			names, paths = append(names, name), append(paths, dir+"/"+child)
		}
	}
	found, err := o.Store.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var all []Named
	for k, f := range found {
		if !f.Found {
			continue // purged meanwhile
		}
		r, err := parseRecord(f.Data)
		all = append(all, Named{Name: names[k], Record: r, Written: f.Stat.Mtime, Err: damagedAt(paths[k], err)})
	}
	return all, nil
}

// foldSections moves sections into their families, each of which comes before its sections.
func foldSections(all []Named) (folded []Named) {
	for len(all) > 0 {
		n, end := all[0], 1
		for ; end < len(all) && n.Record.Sections > 0; end++ {
			if of, _, is := SectionOf(all[end].Name); !is || of != n.Name {
				break
			}
		}
		folded, all = append(folded, n.with(all[1:end])), all[end:]
	}
	return folded
}

// with returns a family with those of its sections that exist. If one of them is damaged, the family is.
func (n Named) with(sections []Named) Named {
	var entries []entry
	for _, s := range sections {
		switch {
		case s.Err != nil:
			n.Err = s.Err
		case s.exists():
			n.Sections, entries = append(n.Sections, s), append(entries, entry{record: &s.Record})
			if s.Written >= n.Written {
				n.Written, n.By = s.Written, s.By
			}
		}
	}
	if n.Record.Kind() == Family {
		n.Record = asOne(n.Record, entries)
	}
	return n
}

// Nodes returns the addresses of the nodes that may own ordered sequences. Nodes are on the list while they know an
// ordered sequence, and have an address.
func (o Operator) Nodes(ctx context.Context) ([]string, error) {
	nodes, err := o.Store.Children(ctx, nodesDir)
	if errors.Is(err, store.ErrNoNode) {
		return nil, nil
	}
	return nodes, err
}

// State returns the state of all sequences. It returns ErrNoState if no node has served sequences yet, and ErrDamaged.
func (o Operator) State(ctx context.Context) (st State, err error) {
	if err := o.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return State{}, err
	}
	found, err := o.Store.GetAll(ctx, clusterPath, statePath)
	if err != nil {
		return State{}, err
	}
	v, err := parseFound(found)
	switch {
	case err != nil:
		return State{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	case v.state == nil:
		return State{}, ErrNoState
	}
	return *v.state, nil
}

// Show returns the record of a sequence, or of its tombstone, and the state of all sequences. It
// returns ErrNotFound if there is none.
func (o Operator) Show(ctx context.Context, name string) (Record, State, error) {
	n, st, err := o.Find(ctx, name)
	return n.Record, st, err
}

// Find is Show with the time at which the record was written.
func (o Operator) Find(ctx context.Context, name string) (Named, State, error) {
	v, _, err := o.look(ctx, name)
	_, hasPath := errors.AsType[damagedError](err)
	switch {
	case hasPath: // of a section
		return Named{}, State{}, err
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrUnknownMode):
		return Named{}, State{}, damagedAt(recordPath(name), err)
	case err != nil:
		return Named{}, State{}, err
	case v.record == nil:
		return Named{}, *v.state, ErrNotFound
	}
	var sections []Named
	for _, e := range v.sections {
		if e.record != nil {
			sections = append(sections, Named{Name: e.name, Record: *e.record, Written: e.written})
		}
	}
	return Named{Name: name, Record: *v.record, Written: v.stat.Mtime}.with(sections), *v.state, nil
}
