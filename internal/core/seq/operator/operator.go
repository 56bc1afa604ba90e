// Package operator has the commands of people on named sequences: create, set, delete, purge and list. Nothing that
// serves calls it, and the root package does not link it.
//
// The invariant: no command makes a value come twice, although nodes take blocks meanwhile. A command writes /seq and
// all records that it changes in one transaction over what it has read. A jump that no skip after a loss of data covers
// waits until the nodes know the last change of the name (S29), and a far one until all nodes know it (S34).
//
// Three types to read:
//
//   - Commands has the commands.
//   - Change has the settings that a command changes, and record.Named is a sequence as the commands show it.
//   - NotFollowedError says which nodes do not know a change, and whether it was made.
package operator

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// Commands has the commands of an operator on the sequences of a cluster. No value is issued twice,
// although nodes take blocks at the same time.
type Commands struct {
	Store store.Store
	// Clock is nil for that of the machine.
	Clock Clock
	// By is the operator's name, for people.
	By string
	// OnWait is called when a command has waited for the nodes for a second: see await. It may be nil.
	OnWait func()
	// IgnoredWorkers are workers for which a far jump does not wait while they are not connected (S34).
	IgnoredWorkers []int
}

// ErrNoState: no node of this cluster has served sequences yet.
var ErrNoState = errors.New("no node of this cluster has served sequences yet")

// ErrNotFound: there is no sequence with this name.
var ErrNotFound = errors.New("sequence not found")

// Delete deletes a sequence. Its record stays as a tombstone, so that the name does not begin again
// with values that were issued. It returns ErrNotFound, or an error of update.
func (s Commands) Delete(ctx context.Context, name string) (record.Record, error) {
	r, err := s.update(ctx, name, true, func(v view) (writes, error) {
		switch {
		case !v.Record.Exists():
			return writes{}, ErrNotFound
		case v.Record.Kind() == record.Family:
			return v.deleteFamily(s.Now()), nil
		}
		return writes{own: v.Record.Deleted(*v.State, s.Now())}, nil
	})
	if err == nil {
		s.deleteRequestKeys(ctx, r)
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
func (s Commands) Purge(ctx context.Context, name string) error {
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
		for _, e := range append(v.sections, foundRecord{name, v.Record, v.Stat.Version, 0}) {
			if e.record.Kind() == record.Tombstone {
				next.Purged = max(next.Purged, e.record.WriteCount)
				removed = append(removed, store.DeleteOp{Path: record.Path(e.name), Version: e.version})
			}
		}
		ops := append(v.SetStateOps(next), v.CheckClusterOp())
		if err = s.Store.Multi(ctx, append(ops, removed...)...); !store.Outpaced(err) {
			if err == nil {
				s.deleteRequestKeys(ctx, *v.Record)
			}
			return err
		}
	}
}
