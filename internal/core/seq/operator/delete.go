package operator

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// Delete deletes a sequence. Its record stays as a tombstone, so that the name does not begin again with values that
// were issued. It returns ErrNotFound, or an error of update.
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

// Purge removes the tombstone of a deleted sequence. Then nothing remembers which values were issued: a new sequence
// with this name begins where its definition says. It returns ErrTooEarly while nodes that are cut off may issue values
// (S18): see Record.IssuableFor. It returns a *NotFollowedError if a connected node does not follow the deletion in
// time. The same happens if a node with a running lease is not connected, but not for a strict sequence or a template.
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
