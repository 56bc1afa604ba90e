package seq

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// This file deals with the keys of salted and scattered sequences. A key is written with the record, has its ID as
// name, and never changes: under another key, positions would get values that others had. So a node
// without the key issues nothing, and a node that knows it puts it back if ZooKeeper has lost it.

const secretsDir = "/seq/k"

func secretPath(id string) string { return secretsDir + "/" + id }

// secret is the key of a sequence as a node knows it. checked is when the node last found the key in ZooKeeper, in ns
// of AtMost.
type secret struct {
	key     sequence.Key
	checked int64
}

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

// valuesOf returns a record's map with its key. A plain map needs none.
func (s *secret) valuesOf(r Record) sequence.Values {
	if s == nil {
		return sequence.NewValues(r.Map, sequence.Key{})
	}
	return sequence.NewValues(r.Map, s.key)
}

// appendRuns appends the values of a block to to.
func appendRuns(to []worker.Run, v *sequence.Values, b positions.Block) []worker.Run {
	if !v.Keyed() {
		first := worker.ID(v.Map.Value(b.First))
		return append(to, worker.Run{First: first, Step: worker.ID(v.Increment), Len: int(b.Len())})
	}
	for p := b.First; p < b.End; p++ {
		to = append(to, worker.Run{First: worker.ID(v.Value(p)), Len: 1})
	}
	return to
}

// secretDue reports whether the node must look for the key of a record in ZooKeeper. mu is held.
func (s *series) secretDue(r Record, now int64) bool {
	learned := s.known != nil && s.known.ID == r.ID && s.secret != nil
	return !learned || s.stale || now-s.secret.checked >= int64(renewAfter)
}

// putBackSecret returns the operation that puts back the key of a record, if ZooKeeper has lost it and the node
// knows it. mu is held.
func (s *series) putBackSecret(v view, r Record) []store.Op {
	if v.secret == nil || s.secret == nil || s.known.ID != r.ID {
		return nil
	}
	if _, ok := r.secretIn(*v.secret); ok {
		return nil
	}
	write := writeSecret(r.ID, s.secret.key)
	if v.secret.Found {
		return []store.Op{store.SetOp{Path: write.Path, Data: write.Data, Version: v.secret.Stat.Version}}
	}
	return []store.Op{write}
}

// learnSecret takes over the key of the record known, if it was read. sent is when the read was sent, ns of
// AtMost.
func (s *series) learnSecret(v view, sent int64) {
	if v.secret == nil {
		return
	}
	if k, ok := s.known.secretIn(*v.secret); ok {
		s.secret = &secret{k, sent}
		s.values = s.secret.valuesOf(*s.known)
	}
}

// ErrNoKey: ZooKeeper does not have the key of the sequence.
var ErrNoKey = errors.New("the key of the sequence is missing in ZooKeeper")

// Key returns the key of a sequence, to turn its values into positions. That of a plain one has no effect. It returns
// ErrNoKey if there is none.
func (o Operator) Key(ctx context.Context, r Record) (sequence.Key, error) {
	if !r.Keyed() {
		return sequence.Key{}, nil
	}
	found, err := o.Store.GetAll(ctx, secretPath(r.ID))
	if err != nil {
		return sequence.Key{}, err
	}
	k, ok := r.secretIn(found[0])
	if !ok {
		return sequence.Key{}, ErrNoKey
	}
	return k, nil
}

// deleteSecret deletes the key of a sequence that is no more.
func (o Operator) deleteSecret(ctx context.Context, id string) error {
	if err := o.Store.Delete(ctx, secretPath(id), store.AnyVersion); !errors.Is(err, store.ErrNoNode) {
		return err
	}
	return nil
}
