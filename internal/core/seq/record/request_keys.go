package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// A request of a strict sequence may have a key, which the client has chosen. The keys of the last values are kept in a
// znode beside the record, and written together with it. A later request with the same key gets the same value, from
// any node.

// MaxRequestKeys is the number of keys that are remembered of a sequence (S16). A key does not expire: with a wrong
// clock, a retry would get another value.
const MaxRequestKeys = 1000

// KeyHash is the first 96 bits of the SHA-256 of a key.
type KeyHash [12]byte

// HashKey returns the hash by which a key is remembered.
func HashKey(key string) (h KeyHash) {
	sum := sha256.Sum256([]byte(key))
	copy(h[:], sum[:])
	return h
}

// KeyEntry is one key that got the value of a position.
type KeyEntry struct {
	Key      KeyHash
	Position int64
}

// keyEntryLen is the size of an entry in ZooKeeper: the hash and the position, big-endian.
const keyEntryLen = 12 + 8

// RequestKeys are the keys that are remembered of a strict sequence, as they were read.
type RequestKeys struct {
	Entries []KeyEntry // the oldest first, MaxRequestKeys at most
	Exists  bool       // the znode
	Version int32      // of the znode
}

// ParseRequestKeys parses the znode of the keys. Its error is ErrDamaged.
func ParseRequestKeys(data []byte) (entries []KeyEntry, err error) {
	if len(data)%keyEntryLen != 0 {
		return nil, fmt.Errorf("%w: %d bytes of keys", ErrDamaged, len(data))
	}
	for ; len(data) > 0; data = data[keyEntryLen:] {
		e := KeyEntry{Position: int64(binary.BigEndian.Uint64(data[12:]))}
		copy(e.Key[:], data)
		entries = append(entries, e)
	}
	return entries, nil
}

// Marshal returns the content of the znode.
func (k *RequestKeys) Marshal() []byte {
	data := make([]byte, 0, len(k.Entries)*keyEntryLen)
	for _, e := range k.Entries {
		data = append(data, e.Key[:]...)
		data = binary.BigEndian.AppendUint64(data, uint64(e.Position))
	}
	return data
}

// Find returns the position that a key got.
func (k *RequestKeys) Find(key KeyHash) (position int64, ok bool) {
	for _, e := range k.Entries {
		//mutant:s16-forgotten-keys by seqsim -> if false && e.Key == key {
		if e.Key == key {
			return e.Position, true
		}
	}
	return 0, false
}

// With returns the keys after a write: the last MaxRequestKeys, with those that were added.
func (k *RequestKeys) With(added []KeyEntry) *RequestKeys {
	after := *k
	after.Entries = slices.Concat(k.Entries, added)
	after.Entries = after.Entries[max(0, len(after.Entries)-MaxRequestKeys):]
	return &after
}

// Ops returns the operations that write the keys, if ZooKeeper has the keys that k was made from.
func (k *RequestKeys) Ops(id string) []store.Op {
	if !k.Exists {
		return []store.Op{store.CreateOp{Path: RequestKeysPath(id), Data: k.Marshal()}}
	}
	return setVersion(store.SetOp{Path: RequestKeysPath(id), Data: k.Marshal(), Version: k.Version})
}

// Dirs returns the paths that must exist before Ops.
func (k *RequestKeys) Dirs() []string {
	if k.Exists {
		return nil
	}
	return []string{RequestKeysDir}
}

// AfterWrite returns the keys as ZooKeeper has them after Ops.
func (k *RequestKeys) AfterWrite() *RequestKeys {
	after := *k
	after.Exists = true
	if after.Version++; !k.Exists || after.Version == store.AnyVersion {
		after.Version = 0
	}
	return &after
}

// Merged returns the keys together with those that a node knows, in the order of their positions. due is false if that
// adds none.
func (k *RequestKeys) Merged(known []KeyEntry) (all *RequestKeys, due bool) {
	all = &RequestKeys{slices.Clone(k.Entries), k.Exists, k.Version}
	for _, e := range known {
		if !slices.ContainsFunc(k.Entries, func(f KeyEntry) bool { return f.Key == e.Key }) {
			all.Entries = append(all.Entries, e)
		}
	}
	slices.SortStableFunc(all.Entries, func(a, b KeyEntry) int { return cmp.Compare(a.Position, b.Position) })
	all.Entries = all.Entries[max(0, len(all.Entries)-MaxRequestKeys):]
	return all, !slices.Equal(all.Entries, k.Entries)
}
