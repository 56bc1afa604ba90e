package seq

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

// This file deals with the keys of salted and scattered sequences. A key is written with the record, has its ID as
// name, and never changes: under another key, positions would get values that others had. So a node
// without the key issues nothing, and a node that knows it puts it back if ZooKeeper has lost it.

const secretsDir = "/seq/k"

func secretPath(id string) string { return secretsDir + "/" + id }

// hasSecret reports whether there must be a key for the record. A template has none: each of its sequences gets
// its own.
func (r Record) hasSecret() bool { return r.Keyed() && r.Kind() == Sequence }

// dirs returns the paths above a record and its key.
func (r Record) dirs(name string) []string {
	all := []string{recordsDir, bucketPath(name)}
	if r.Keyed() {
		all = append(all, secretsDir)
	}
	return all
}

// withSecret returns a new record with the fingerprint of a new key, and the operation that writes the key.
func (r Record) withSecret() (Record, []store.Op) {
	if !r.hasSecret() {
		return r, nil
	}
	k := sequence.NewKey()
	r.KeyCheck = k.Fingerprint()
	return r, []store.Op{writeSecret(r.ID, k)}
}

// writeSecret returns the operation that writes the key of the record with this ID.
func writeSecret(id string, k sequence.Key) store.CreateOp {
	return store.CreateOp{Path: secretPath(id), Data: []byte(k.Hex()), Secret: true}
}

// secretIn returns the record's key from what was read at secretPath. ok is false if that is not the key.
func (r Record) secretIn(found store.Record) (k sequence.Key, ok bool) {
	k, err := sequence.ParseKey(string(found.Data))
	return k, err == nil && k.Fingerprint() == r.KeyCheck
}

// merged returns the keys together with those that a node knows, in the order of their positions. due is false if that
// adds none.
func (k *keyring) merged(known []keyEntry) (all *keyring, due bool) {
	all = &keyring{slices.Clone(k.entries), k.exists, k.version}
	for _, e := range known {
		if !slices.ContainsFunc(k.entries, func(f keyEntry) bool { return f.key == e.key }) {
			all.entries = append(all.entries, e)
		}
	}
	slices.SortStableFunc(all.entries, func(a, b keyEntry) int { return cmp.Compare(a.position, b.position) })
	all.entries = all.entries[max(0, len(all.entries)-maxKeys):]
	return all, !slices.Equal(all.entries, k.entries)
}
