package seq

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/store"
)

// A request of a strict sequence may have a key. The keys of the last values are kept in a znode next to the
// record, and written together with it. A later request with the same key gets the same value, from any node.

// keysDir has one znode for each strict sequence that is asked with keys, by the record's ID.
const keysDir = "/seq/r"

func keysPath(id string) string { return keysDir + "/" + id }

// maxKeys is the number of keys that are remembered of a sequence (S16). No clock ends a key: one that is wrong would
// give the key another value.
const maxKeys = 1000

// keyHash is the first 96 bits of the SHA-256 of a key.
type keyHash [12]byte

func hashKey(key string) (h keyHash) {
	sum := sha256.Sum256([]byte(key))
	copy(h[:], sum[:])
	return h
}

// keyEntry is one key that got a value.
type keyEntry struct {
	key      keyHash
	position int64
}

// keyEntryLen is the size of an entry in ZooKeeper: the hash and the position, big-endian.
const keyEntryLen = 12 + 8

// keyring is the keys of a sequence that are remembered, the oldest first. version is that of the znode.
type keyring struct {
	entries []keyEntry
	exists  bool
	version int32
}

func parseKeys(data []byte) (entries []keyEntry, err error) {
	if len(data)%keyEntryLen != 0 {
		return nil, fmt.Errorf("%w: %d bytes of keys", ErrDamaged, len(data))
	}
	for ; len(data) > 0; data = data[keyEntryLen:] {
		e := keyEntry{position: int64(binary.BigEndian.Uint64(data[12:]))}
		copy(e.key[:], data)
		entries = append(entries, e)
	}
	return entries, nil
}

func (k *keyring) marshal() []byte {
	data := make([]byte, 0, len(k.entries)*keyEntryLen)
	for _, e := range k.entries {
		data = append(data, e.key[:]...)
		data = binary.BigEndian.AppendUint64(data, uint64(e.position))
	}
	return data
}

// find returns the position that a key got.
func (k *keyring) find(key keyHash) (position int64, ok bool) {
	for _, e := range k.entries {
		//mutant:s16-forgotten-keys by seqsim -> if false && e.key == key {
		if e.key == key {
			return e.position, true
		}
	}
	return 0, false
}

// keysAfter returns the keys after a write that gives the positions from first on to requests. It returns nil if none
// of them has a key.
func keysAfter(k *keyring, requests []request, first int64) *keyring {
	var added []keyEntry
	for _, r := range requests {
		if r.w.Key != "" {
			added = append(added, keyEntry{hashKey(r.w.Key), first})
		}
		first += r.n
	}
	if len(added) == 0 {
		return nil
	}
	return k.with(added)
}

// with returns the keys after a write: the last maxKeys, with those that were added.
func (k *keyring) with(added []keyEntry) *keyring {
	after := *k
	after.entries = slices.Concat(k.entries, added)
	after.entries = after.entries[max(0, len(after.entries)-maxKeys):]
	return &after
}

// ops returns the operations that write the keys, if ZooKeeper has the keys that k was made from.
func (k *keyring) ops(id string) []store.Op {
	if !k.exists {
		return []store.Op{store.CreateOp{Path: keysPath(id), Data: k.marshal()}}
	}
	return setVersion(store.SetOp{Path: keysPath(id), Data: k.marshal(), Version: k.version})
}

// dirs returns the paths that must exist before ops.
func (k *keyring) dirs() []string {
	if k.exists {
		return nil
	}
	return []string{keysDir}
}

// written returns the keys as ZooKeeper has them after ops.
func (k *keyring) written() *keyring {
	after := *k
	after.exists = true
	if after.version++; !k.exists || after.version == store.AnyVersion {
		after.version = 0
	}
	return &after
}

// waitWithKeys reports whether a request with a key waits. mu is held.
func (s *series) waitWithKeys() bool {
	return slices.ContainsFunc(s.waiting, func(r request) bool { return r.w.Key != "" })
}

// repeat answers the requests with keys that have a value already, and returns the others. Of requests with one key
// that has none, all but the first wait on: they get its value from the keys.
func (s *strict) repeat(v view) (fresh, rest []request) {
	if !s.waitWithKeys() {
		return s.waiting, nil
	}
	seen := make(map[string]bool)
	for _, r := range s.waiting {
		key := r.w.Key
		if key == "" {
			fresh = append(fresh, r)
			continue
		}
		p, found := int64(0), v.keys != nil
		if found {
			p, found = v.keys.find(hashKey(key))
		}
		switch {
		case found:
			r.w.Result = &result{values: s.values, block: positions.Block{First: p, End: p + 1}, again: true}
			rest = append(rest, r)
		case seen[key], v.keys == nil: // asked twice at once, or it came after the keys were read
			rest = append(rest, r)
		default:
			seen[key] = true
			fresh = append(fresh, r)
		}
	}
	return fresh, rest
}

// forgetKeys removes the keys of a record that is deleted. A failure does no harm: nobody reads them again.
func (o Operator) forgetKeys(ctx context.Context, r Record) {
	if r.Mode.hasKeys() {
		_ = o.Store.Delete(ctx, keysPath(r.ID), store.AnyVersion)
	}
}
