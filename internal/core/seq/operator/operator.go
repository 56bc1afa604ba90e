// Package operator has the commands of people on named sequences: create, set, delete, purge and list. A serving node
// does not link it.
//
// The invariant: no command makes a value come twice, although nodes take blocks meanwhile. A command writes /seq and
// all records that it changes in one transaction over what it has read. A jump that no skip after a loss of data covers
// waits until the nodes know the last change of the name (S29), and a far one until all nodes know it (S34).
//
// Three types to read:
//
//   - Sequences has the commands.
//   - Change has the settings that a command changes, and record.Named is a sequence as the commands show it.
//   - NotFollowedError says which nodes do not know a change, and whether it was made.
package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// Sequences has the commands of an operator on the sequences of a cluster. No value is issued twice,
// although nodes take blocks at the same time.
type Sequences struct {
	Store store.Store
	// Clock is nil for that of the machine.
	Clock Clock
	// By is the operator's name, for people.
	By string
	// Waiting is called when a command has waited for the nodes for a second: see await. It may be nil.
	Waiting func()
	// Without are workers for which a far jump does not wait while they are not connected (S34).
	Without []int
}

// ErrNoState: no node of this cluster has served sequences yet.
var ErrNoState = errors.New("no node of this cluster has served sequences yet")

// ErrNotFound: there is no sequence with this name.
var ErrNotFound = errors.New("sequence not found")

// Delete deletes a sequence. Its record stays as a tombstone, so that the name does not begin again
// with values that were issued. It returns ErrNotFound, or an error of update.
func (s Sequences) Delete(ctx context.Context, name string) (record.Record, error) {
	r, err := s.update(ctx, name, true, func(v seen) (writes, error) {
		switch {
		case !v.Record.Exists():
			return writes{}, ErrNotFound
		case v.Record.Kind() == record.Family:
			return v.deleteFamily(s.Now()), nil
		}
		return writes{own: v.Record.Deleted(*v.State, s.Now())}, nil
	})
	if err == nil {
		s.forgetKeys(ctx, r)
	}
	return r, err
}

// ErrTooEarly: a tombstone must stay for longer.
var ErrTooEarly = errors.New("nodes that are cut off may still issue values of this sequence")

// Purge removes the tombstone of a deleted sequence. Then nothing remembers which values were issued: a
// new sequence with this name begins where its definition says. It returns ErrTooEarly while nodes that
// are cut off may issue values (S18): see Record.IssuableFor. It returns a *NotFollowedError if a connected node
// does not follow the deletion in time. The same happens if a node with a running lease is not connected, but not for a
// strict sequence or a template.
func (s Sequences) Purge(ctx context.Context, name string) error {
	for {
		v, ctx, err := s.look(ctx, name)
		switch {
		case err != nil:
			return err
		case v.Record.Kind() == record.None:
			return ErrNotFound
		case v.Record.Kind() != record.Tombstone:
			return errors.New("the sequence is in use. Delete it first")
		//mutant:s18-early-purge by internal/core/seq:TestNoValueOfAnyLifeComesTwice -> case false:
		case v.Record.IssuableFor(*v.State) > 0:
			return ErrTooEarly
		}
		// A node that knows only the life that was deleted comes to the values of the next one (S34).
		//mutant:s34-purged-alone by internal/core/seq:TestPurgeNeedsAllNodes -> if false {
		if err := s.guard(ctx, name, v, v.Record.GoesOnAlone()); err != nil {
			return err
		}
		if err := s.deleteMapKey(ctx, v.Record.ID); err != nil {
			return err
		}
		next, removed := v.State.After(name), []store.Op(nil)
		for _, e := range append(v.sections, entry{name, v.Record, v.Stat.Version, 0}) {
			if e.record.Kind() == record.Tombstone {
				next.Purged = max(next.Purged, e.record.Gen)
				removed = append(removed, store.DeleteOp{Path: record.Path(e.name), Version: e.version})
			}
		}
		ops := append(v.SetState(next), v.CheckCluster())
		if err = s.Store.Multi(ctx, append(ops, removed...)...); !store.Outpaced(err) {
			if err == nil {
				s.forgetKeys(ctx, *v.Record)
			}
			return err
		}
	}
}

// update changes the records of a name and /seq in one write, and tries again if another write was faster. jump is
// false for changes that need no guard.
//
// Besides the errors of change and of the store, it returns ErrNoState, and record.ErrDamaged or record.ErrUnknownMode
// for a record that cannot be used. It returns a *NotFollowedError if nodes have not followed the last change before a
// jump, or have not followed a far jump in time: then it says Made. It returns ErrMade if that is not known.
func (s Sequences) update(
	ctx context.Context, name string, jump bool, change func(v seen) (writes, error),
) (record.Record, error) {
	type last struct{ changes, incarnation int64 }
	var guarded *last
	for {
		v, bound, err := s.look(ctx, name)
		if err != nil {
			return record.Record{}, err
		}
		after, err := change(v)
		if err != nil {
			return record.Record{}, err
		}
		var ops []store.Op
		replaced := v.Record == nil || v.Record.ID != after.own.ID
		if replaced {
			if after.own, ops, err = s.mapKeyFor(bound, after.own, v.Record); err != nil {
				return record.Record{}, err
			}
		}
		now := last{v.State.LastChange(name), v.Incarnation()}
		if jump && (guarded == nil || *guarded != now) {
			if err := s.guard(ctx, name, v, v.far(name, after)); err != nil {
				return record.Record{}, err
			}
			guarded = &now
			if len(after.sections) > 0 {
				continue // owners have renewed some meanwhile
			}
		}
		r, err := s.commit(bound, name, v, after, ops)
		if err == nil && v.Record != nil && replaced {
			err = s.deleteMapKey(ctx, v.Record.ID)
		}
		if store.Outpaced(err) {
			continue
		}
		//mutant:s34-unheard by internal/core/seq:TestFarJumpsAreHeard -> if false {
		if err == nil && v.far(name, after) {
			at := coordinator.Change{Number: v.State.Changes + 1, Incarnation: v.Incarnation()}
			err = s.await(ctx, at, true, true)
			if err != nil && !errors.As(err, new(*NotFollowedError)) {
				err = fmt.Errorf("%w: %w", ErrMade, err)
			}
		}
		return r, err
	}
}

// seen has the records that an operator has read: that of a name, and of a family those of its sections, by number,
// also those of earlier lives.
type seen struct {
	record.Found
	sections []entry
}

// look reads /seq and a record, and the sections of a family. Writes that go by them must use the context that look
// returns: in another session ZooKeeper may have lost data, and versions may have come back.
func (s Sequences) look(ctx context.Context, name string) (seen, context.Context, error) {
	if err := s.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return seen{}, ctx, err
	}
	session := s.Store.SessionID()
	bound := store.OnSession(ctx, session)
	found, err := s.Store.GetAll(bound, record.ClusterPath, record.StatePath, record.Path(name))
	if now := s.Store.SessionID(); err != nil && now != session && now != 0 && ctx.Err() == nil {
		return s.look(ctx, name) // nothing was written yet; ZooKeeper before 3.6 ends the session at the first GetAll
	}
	ctx = bound
	if err != nil {
		return seen{}, ctx, err
	}
	var v seen
	v.Found, err = record.ParseFound(found)
	if err == nil && (v.State == nil || v.Cluster == nil) {
		err = ErrNoState
	}
	if err == nil && v.Record != nil && v.Record.Sections > 0 {
		v.sections, err = s.readSections(ctx, name)
	}
	return v, ctx, err
}

// commit writes the records of a change. also are the operations that belong to them.
func (s Sequences) commit(
	ctx context.Context, name string, v seen, after writes, also []store.Op,
) (r record.Record, err error) {
	ops, nonce := append(v.SetState(v.State.After(name)), v.CheckCluster()), record.NewNonce("")
	ops = append(append(ops, after.before...), also...)
	if v.Record == nil || after.own.Keyed() {
		if err := s.Store.EnsureRoot(ctx, after.own.Dirs(name)...); err != nil {
			return record.Record{}, err
		}
	}
	write := func(e entry, r record.Record) (record.Record, error) {
		r = r.Written(nonce, s.By)
		if data := r.Marshal(); len(data) > record.MaxBytes {
			return r, fmt.Errorf("the record has %d bytes, at most %d are allowed", len(data), record.MaxBytes)
		}
		if e.record == nil {
			ops = append(ops, record.CreateOp(e.name, r))
		} else {
			ops = append(ops, record.SetOps(e.name, r, e.version)...)
		}
		return r, nil
	}
	if r, err = write(entry{name, v.Record, v.Stat.Version, 0}, after.own); err != nil {
		return record.Record{}, err
	}
	for _, section := range after.sections {
		if _, err := write(section.entry, section.after); err != nil {
			return record.Record{}, err
		}
	}
	return r, s.Store.Multi(ctx, ops...)
}

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

// Nodes returns the addresses of the nodes that may own ordered sequences. A node is on the list while it has an
// address, knows an ordered sequence, may take values, and gives none away. Exception: it has just lost a section twice
// (O9).
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

// ErrNoKey: ZooKeeper does not have the key of the sequence.
var ErrNoKey = errors.New("the key of the sequence is missing in ZooKeeper")

// Key returns the key of a sequence, to turn its values into positions. That of a plain one has no effect. It returns
// ErrNoKey if there is none.
func (s Sequences) Key(ctx context.Context, r record.Record) (sequence.Key, error) {
	if !r.Keyed() {
		return sequence.Key{}, nil
	}
	found, err := s.Store.GetAll(ctx, record.MapKeyPath(r.ID))
	if err != nil {
		return sequence.Key{}, err
	}
	k, ok := r.MapKeyIn(found[0])
	if !ok {
		return sequence.Key{}, ErrNoKey
	}
	return k, nil
}

// deleteMapKey deletes the map key of a sequence that is no more.
func (s Sequences) deleteMapKey(ctx context.Context, id string) error {
	if err := s.Store.Delete(ctx, record.MapKeyPath(id), store.AnyVersion); !errors.Is(err, store.ErrNoNode) {
		return err
	}
	return nil
}

// forgetKeys removes the keys of a record that is deleted. A failure does no harm: nobody reads them again.
func (s Sequences) forgetKeys(ctx context.Context, r record.Record) {
	if r.Mode.HasRequestKeys() {
		_ = s.Store.Delete(ctx, record.RequestKeysPath(r.ID), store.AnyVersion)
	}
}

// Clock is the time that an operator goes by.
type Clock interface {
	Now() time.Time
	// Sleep blocks for d, or until ctx ends. Then it returns the error of ctx.
	Sleep(ctx context.Context, d time.Duration) error
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Now returns the time of the operator's clock, Unix milliseconds.
func (s Sequences) Now() int64 { return s.clock().Now().UnixMilli() }

// Sleep blocks for d by the operator's clock, or until ctx ends. Then it returns the error of ctx.
func (s Sequences) Sleep(ctx context.Context, d time.Duration) error { return s.clock().Sleep(ctx, d) }

func (s Sequences) clock() Clock {
	if s.Clock == nil {
		return machineClock{}
	}
	return s.Clock
}
