package seqstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// This file deals with the keys of salted and scattered sequences. A key is written with the record, has its ID as
// name, and never changes: under another key, positions would get values that others had. So a node
// without the key issues nothing, and a node that knows it puts it back if ZooKeeper has lost it.

const secretsDir = "/seq/k"

func secretPath(id string) string { return secretsDir + "/" + id }

// secret is the key of a sequence as a node knows it. checked is when the node last found the key in ZooKeeper, in ns of
// the monotonic clock.
type secret struct {
	key     sequence.Key
	checked int64
}

// hasKey reports whether there must be a key for the record. A template has none: each of its sequences gets its own.
func (r Record) hasKey() bool { return r.Keyed() && r.Kind() == Sequence }

// dirs returns the paths above a record and its key.
func (r Record) dirs(name string) []string {
	all := []string{recordsDir, bucketPath(name)}
	if r.Keyed() {
		all = append(all, secretsDir)
	}
	return all
}

// withKey returns a new record with the fingerprint of a new key, and the operation that writes the key.
func (r Record) withKey() (Record, []zkstore.Op) {
	if !r.hasKey() {
		return r, nil
	}
	k := sequence.NewKey()
	r.KeyCheck = k.Fingerprint()
	return r, []zkstore.Op{writeKey(r.ID, k)}
}

// writeKey returns the operation that writes the key of the record with this ID.
func writeKey(id string, k sequence.Key) zkstore.Op {
	return zkstore.CreateOp{Path: secretPath(id), Data: []byte(k.Hex()), Secret: true}
}

// keyIn returns the record's key from what was read at secretPath. ok is false if that is not the key.
func (r Record) keyIn(found zkstore.Record) (k sequence.Key, ok bool) {
	k, err := sequence.ParseKey(string(found.Data))
	return k, err == nil && k.Fingerprint() == r.KeyCheck
}

// values returns the record's map with its key. A plain map needs none.
func (r Record) values(s *secret) sequence.Values {
	if s == nil {
		return sequence.NewValues(r.Map, sequence.Key{})
	}
	return sequence.NewValues(r.Map, s.key)
}

// nextFlag returns the flag of `flaked seq set` that says where the sequence goes on.
func (r Record) nextFlag() string {
	if r.Scatter > 0 {
		return "--next-position POSITION"
	}
	return "--next VALUE"
}

// appendRuns appends the values of a block to to.
func appendRuns(to []worker.Run, v *sequence.Values, b sequence.Block) []worker.Run {
	if !v.Keyed() {
		return append(to, worker.Run{First: worker.ID(v.Map.Value(b.First)), Step: worker.ID(v.Increment), Len: int(b.Len())})
	}
	for p := b.First; p < b.End; p++ {
		to = append(to, worker.Run{First: worker.ID(v.Value(p)), Len: 1})
	}
	return to
}

func lostKey(name string) *Refusal {
	return &Refusal{Reason: Frozen, Text: fmt.Sprintf("the key of sequence %s is missing in ZooKeeper, and this node does not know it. Start a node that does, or delete the sequence and create it again: flaked seq delete %[1]s", name)}
}

func wrongMode(name string) *Refusal {
	return &Refusal{Reason: WrongMode, Text: "the values of " + name + " are salted or scattered, so no range of them exists. Use NEXT with a count"}
}

// settleKey looks for the key of a record of s, and returns it. It returns nil if there is none, or if there is no need to
// look. If ZooKeeper has lost the key, and the node knows it, settleKey puts it back. v is what was read.
func (i *Issuer) settleKey(ctx context.Context, s *series, v view, r *Record) (*secret, error) {
	if r == nil || !r.hasKey() {
		return nil, nil
	}
	now := i.cfg.Mono()
	known, due := s.keyDue(*r, now)
	if !due {
		return nil, nil
	}
	found, err := i.cfg.Store.GetAll(ctx, secretPath(r.ID))
	if err != nil {
		return nil, err
	}
	k, ok := r.keyIn(found[0])
	switch {
	case ok:
		return &secret{k, now}, nil
	case known == nil:
		return nil, nil
	}
	i.cfg.Log.Warn("ZooKeeper has lost the key of a sequence. This node puts it back", "sequence", s.name)
	return known, i.putKeyBack(ctx, v, r.ID, found[0], known.key)
}

// keyDue returns what the node knows of the record's key, and whether it must look for the key in ZooKeeper.
func (s *series) keyDue(r Record, now int64) (known *secret, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || s.known.ID != r.ID || s.secret == nil {
		return nil, true
	}
	return s.secret, s.stale || now-s.secret.checked >= int64(renewAfter)
}

// learnKey takes over the key of the record known, as settleKey returned it.
func (s *series) learnKey(k *secret) {
	if k != nil {
		s.secret, s.values = k, s.known.values(k)
	}
}

// putKeyBack writes a key that ZooKeeper has lost.
func (i *Issuer) putKeyBack(ctx context.Context, v view, id string, found zkstore.Record, k sequence.Key) error {
	if err := i.cfg.Store.EnsureRoot(ctx, secretsDir); err != nil {
		return err
	}
	op := writeKey(id, k)
	if found.Found {
		op = zkstore.SetOp{Path: secretPath(id), Data: []byte(k.Hex()), Version: found.Stat.Version}
	}
	err := i.cfg.Store.Multi(zkstore.OnSession(ctx, i.session), append(v.checks(), op)...)
	if outpaced(err) {
		return nil // another node was faster, or the next look shows what is wrong
	}
	return err
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
	k, ok := r.keyIn(found[0])
	if !ok {
		return sequence.Key{}, ErrNoKey
	}
	return k, nil
}

// deleteKey deletes the key of a sequence that is no more.
func (o Operator) deleteKey(ctx context.Context, id string) error {
	if err := o.Store.Delete(ctx, secretPath(id), zkstore.AnyVersion); !errors.Is(err, zkstore.ErrNoNode) {
		return err
	}
	return nil
}
