package operator

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// ErrNoMapKey: ZooKeeper does not have the key of the sequence.
var ErrNoMapKey = errors.New("the key of the sequence is missing in ZooKeeper")

// MapKey returns the key of a sequence, to turn its values into positions. That of a plain one has no effect. It
// returns ErrNoMapKey if there is none.
func (s Commands) MapKey(ctx context.Context, r record.Record) (sequence.Key, error) {
	if !r.Keyed() {
		return sequence.Key{}, nil
	}
	found, err := s.Store.GetAll(ctx, record.MapKeyPath(r.ID))
	if err != nil {
		return sequence.Key{}, err
	}
	k, ok := r.MapKeyIn(found[0])
	if !ok {
		return sequence.Key{}, ErrNoMapKey
	}
	return k, nil
}

// mapKeyFor returns a new record with the fingerprint of its map key, and the operation that writes that key: a new
// one, or that of old, the record whose place it takes, if the new record has its fingerprint. old may be nil.
func (s Commands) mapKeyFor(ctx context.Context, r record.Record, old *record.Record) (record.Record, []store.Op, error) {
	if r.KeyCheck == "" {
		r, ops := r.WithMapKey()
		return r, ops, nil
	}
	k, err := s.MapKey(ctx, *old)
	if errors.Is(err, ErrNoMapKey) {
		err = refused("start must be above %d, because the key with which the name could go on is missing in ZooKeeper",
			r.Highest(0))
	}
	return r, []store.Op{record.WriteMapKey(r.ID, k)}, err
}

// deleteMapKey deletes the map key of a sequence that is no more.
func (s Commands) deleteMapKey(ctx context.Context, id string) error {
	if err := s.Store.Delete(ctx, record.MapKeyPath(id), store.AnyVersion); !errors.Is(err, store.ErrNoNode) {
		return err
	}
	return nil
}

// deleteRequestKeys removes those of a record that is deleted. A failure does no harm: nobody reads them again.
func (s Commands) deleteRequestKeys(ctx context.Context, r record.Record) {
	if r.Mode.HasRequestKeys() {
		_ = s.Store.Delete(ctx, record.RequestKeysPath(r.ID), store.AnyVersion)
	}
}
