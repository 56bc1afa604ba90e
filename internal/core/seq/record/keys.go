package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// A request of a strict sequence may have a key. The keys of the last values are kept in a znode next to the
// record, and written together with it. A later request with the same key gets the same value, from any node.

// KeysDir has one znode for each strict sequence that is asked with keys, by the record's ID.
const KeysDir = "/seq/r"

// KeysPath returns the path of the keys of requests of the sequence with this Record.ID.
func KeysPath(id string) string { return KeysDir + "/" + id }

// MaxKeys is the number of keys that are remembered of a sequence (S16). No clock ends a key: one that is wrong would
// give the key another value.
const MaxKeys = 1000

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

// Keyring is the keys of a sequence that are remembered, as they were read.
type Keyring struct {
	Entries []KeyEntry // the oldest first, MaxKeys at most
	Exists  bool       // the znode
	Version int32      // of the znode
}

// ParseKeys parses the znode of the keys. Its error is ErrDamaged.
func ParseKeys(data []byte) (entries []KeyEntry, err error) {
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
func (k *Keyring) Marshal() []byte {
	data := make([]byte, 0, len(k.Entries)*keyEntryLen)
	for _, e := range k.Entries {
		data = append(data, e.Key[:]...)
		data = binary.BigEndian.AppendUint64(data, uint64(e.Position))
	}
	return data
}

// Find returns the position that a key got.
func (k *Keyring) Find(key KeyHash) (position int64, ok bool) {
	for _, e := range k.Entries {
		//mutant:s16-forgotten-keys by seqsim -> if false && e.Key == key {
		if e.Key == key {
			return e.Position, true
		}
	}
	return 0, false
}

// With returns the keys after a write: the last MaxKeys, with those that were added.
func (k *Keyring) With(added []KeyEntry) *Keyring {
	after := *k
	after.Entries = slices.Concat(k.Entries, added)
	after.Entries = after.Entries[max(0, len(after.Entries)-MaxKeys):]
	return &after
}

// Ops returns the operations that write the keys, if ZooKeeper has the keys that k was made from.
func (k *Keyring) Ops(id string) []store.Op {
	if !k.Exists {
		return []store.Op{store.CreateOp{Path: KeysPath(id), Data: k.Marshal()}}
	}
	return setVersion(store.SetOp{Path: KeysPath(id), Data: k.Marshal(), Version: k.Version})
}

// Dirs returns the paths that must exist before Ops.
func (k *Keyring) Dirs() []string {
	if k.Exists {
		return nil
	}
	return []string{KeysDir}
}

// Written returns the keys as ZooKeeper has them after Ops.
func (k *Keyring) Written() *Keyring {
	after := *k
	after.Exists = true
	if after.Version++; !k.Exists || after.Version == store.AnyVersion {
		after.Version = 0
	}
	return &after
}

// Merged returns the keys together with those that a node knows, in the order of their positions. due is false if that
// adds none.
func (k *Keyring) Merged(known []KeyEntry) (all *Keyring, due bool) {
	all = &Keyring{slices.Clone(k.Entries), k.Exists, k.Version}
	for _, e := range known {
		if !slices.ContainsFunc(k.Entries, func(f KeyEntry) bool { return f.Key == e.Key }) {
			all.Entries = append(all.Entries, e)
		}
	}
	slices.SortStableFunc(all.Entries, func(a, b KeyEntry) int { return cmp.Compare(a.Position, b.Position) })
	all.Entries = all.Entries[max(0, len(all.Entries)-MaxKeys):]
	return all, !slices.Equal(all.Entries, k.Entries)
}

// A salted or scattered sequence has a key. It is written with the record, has its ID as
// name, and never changes: under another key, positions would get values that others had. So a node
// without the key issues nothing, and a node that knows it puts it back if ZooKeeper has lost it.

const secretsDir = "/seq/k"

// SecretPath returns the path of the key of the sequence with this Record.ID.
func SecretPath(id string) string { return secretsDir + "/" + id }

// HasSecret reports whether there must be a key for the record. A template has none: each of its sequences gets
// its own.
func (r Record) HasSecret() bool { return r.Keyed() && r.Kind() == Sequence }

// Dirs returns the paths above a record and its key.
func (r Record) Dirs(name string) []string {
	all := []string{RecordsDir, BucketPath(name)}
	if r.Keyed() {
		all = append(all, secretsDir)
	}
	return all
}

// WithSecret returns a new record with the fingerprint of a new key, and the operation that writes the key.
func (r Record) WithSecret() (Record, []store.Op) {
	if !r.HasSecret() {
		return r, nil
	}
	k := sequence.NewKey()
	r.KeyCheck = k.Fingerprint()
	return r, []store.Op{WriteSecret(r.ID, k)}
}

// WriteSecret returns the operation that writes the key of the record with this ID.
func WriteSecret(id string, k sequence.Key) store.CreateOp {
	return store.CreateOp{Path: SecretPath(id), Data: []byte(k.Hex()), Secret: true}
}

// SecretIn returns the record's key from what was read at SecretPath. ok is false if that is not the key.
func (r Record) SecretIn(found store.Record) (k sequence.Key, ok bool) {
	k, err := sequence.ParseKey(string(found.Data))
	return k, err == nil && k.Fingerprint() == r.KeyCheck
}
