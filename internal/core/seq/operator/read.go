package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// view has the records that an operator has read: that of a name, and of a family those of its sections, by number,
// also those of earlier lives.
type view struct {
	record.Snapshot
	sections []foundRecord
}

// look reads /seq and a record, and the sections of a family. Writes that go by them must use the context that look
// returns: in another session ZooKeeper may have lost data, and versions may have come back.
func (s Commands) look(ctx context.Context, name string) (view, context.Context, error) {
	if err := s.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return view{}, ctx, err
	}
	session := s.Store.SessionID()
	bound := store.OnSession(ctx, session)
	found, err := s.Store.GetAll(bound, record.ClusterPath, record.StatePath, record.Path(name))
	if now := s.Store.SessionID(); err != nil && now != session && now != 0 && ctx.Err() == nil {
		return s.look(ctx, name) // nothing was written yet; ZooKeeper before 3.6 ends the session at the first GetAll
	}
	ctx = bound
	if err != nil {
		return view{}, ctx, err
	}
	var v view
	v.Snapshot, err = record.ParseSnapshot(found)
	if err == nil && (v.State == nil || v.Cluster == nil) {
		err = ErrNoState
	}
	if err == nil && v.Record != nil && v.Record.SectionCount > 0 {
		v.sections, err = s.readSections(ctx, name)
	}
	return v, ctx, err
}

// foundRecord is the record of a name as an operator has read it.
type foundRecord struct {
	name    string
	record  *record.Record // nil: there is none
	version int32
	written int64 // Unix ms of ZooKeeper's leader
}

// readRecords reads the records of names.
func (s Commands) readRecords(ctx context.Context, names []string) ([]foundRecord, error) {
	paths := make([]string, len(names))
	for k, name := range names {
		paths[k] = record.Path(name)
	}
	found, err := s.Store.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	all := make([]foundRecord, len(names))
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

// List returns the sequences whose names begin with prefix, and the tombstones, by name. The sections of a family are
// part of it. It returns ErrNoState if no node has served sequences yet.
func (s Commands) List(ctx context.Context, prefix string) ([]record.Named, record.State, error) {
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

func (s Commands) inBucket(ctx context.Context, dir, prefix string) ([]record.Named, error) {
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
		all = append(all, record.Named{Name: names[k], Record: r, WrittenAt: f.Stat.Mtime, Err: record.DamagedAt(paths[k], err)})
	}
	return all, nil
}

// Nodes returns the addresses of the nodes that may own ordered sequences. A node is on the list while it has an
// address, knows an ordered sequence, may take values, and gives none away. Exception: it has just lost a section twice
// (O9).
func (s Commands) Nodes(ctx context.Context) ([]string, error) {
	nodes, err := s.Store.Children(ctx, record.NodesDir)
	if errors.Is(err, store.ErrNoNode) {
		return nil, nil
	}
	return nodes, err
}

// State returns the state of all sequences. It returns ErrNoState if no node has served sequences yet, and ErrDamaged.
func (s Commands) State(ctx context.Context) (st record.State, err error) {
	if err := s.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return record.State{}, err
	}
	found, err := s.Store.GetAll(ctx, record.ClusterPath, record.StatePath)
	if err != nil {
		return record.State{}, err
	}
	v, err := record.ParseSnapshot(found)
	switch {
	case err != nil:
		return record.State{}, fmt.Errorf("%w: %w", record.ErrDamaged, err)
	case v.State == nil:
		return record.State{}, ErrNoState
	}
	return *v.State, nil
}

// Find returns a sequence, or its tombstone, and the state of all sequences. It returns ErrNotFound if there is none.
func (s Commands) Find(ctx context.Context, name string) (record.Named, record.State, error) {
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
			sections = append(sections, record.Named{Name: e.name, Record: *e.record, WrittenAt: e.written})
		}
	}
	n := record.Named{Name: name, Record: *v.Record, WrittenAt: v.Stat.Mtime}
	return withSections(n, sections), *v.State, nil
}
