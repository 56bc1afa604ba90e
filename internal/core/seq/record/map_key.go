package record

import (
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// A salted or scattered sequence has a map key: the secret by which a position becomes a value. It has a znode beside the
// record, which is created with the record and never changes: under another key, positions would get values that others
// had. So a node without the map key issues nothing, and a node that knows it puts it back if ZooKeeper has lost it.
// The keys of requests have nothing to do with it: see RequestKeys.

// HasMapKey reports whether there must be a map key for the record. A template has none: each of its sequences
// gets its own.
func (r Record) HasMapKey() bool { return r.Keyed() && r.Kind() == Sequence }

// WithMapKey returns a new record with the fingerprint of a new map key, and the operation that writes that key.
func (r Record) WithMapKey() (Record, []store.Op) {
	if !r.HasMapKey() {
		return r, nil
	}
	k := sequence.NewKey()
	r.KeyCheck = k.Fingerprint()
	return r, []store.Op{WriteMapKey(r.ID, k)}
}

// WriteMapKey returns the operation that writes the map key of the record with this ID.
func WriteMapKey(id string, k sequence.Key) store.CreateOp {
	return store.CreateOp{Path: MapKeyPath(id), Data: []byte(k.Hex()), Secret: true}
}

// MapKeyIn returns the record's map key from what was read at MapKeyPath. ok is false if that is not the key.
func (r Record) MapKeyIn(found store.Record) (k sequence.Key, ok bool) {
	k, err := sequence.ParseKey(string(found.Data))
	return k, err == nil && k.Fingerprint() == r.KeyCheck
}
