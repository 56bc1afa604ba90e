package seq

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/store"
)

// Operator has the commands of an operator on the sequences of a cluster. No value is issued twice,
// although nodes take blocks at the same time.
type Operator struct {
	Store store.Store
	// Clock is nil for that of the machine.
	Clock Clock
	// By is the operator's name, for people.
	By string
	// Waiting is called when a jump has waited for the nodes for a second: see guard. It may be nil.
	Waiting func()
}

// ErrNoState: no node of this cluster has served sequences yet.
var ErrNoState = errors.New("no node of this cluster has served sequences yet")

// ErrNotFound: there is no sequence with this name.
var ErrNotFound = errors.New("sequence not found")

// Delete deletes a sequence. Its record stays as a tombstone, so that the name does not begin again
// with values that were issued.
func (o Operator) Delete(ctx context.Context, name string) (Record, error) {
	r, err := o.update(ctx, name, true, func(st State, old *Record) (Record, error) {
		if !old.exists() {
			return Record{}, ErrNotFound
		}
		return old.deleted(st, o.Now()), nil
	})
	if err == nil {
		o.forgetKeys(ctx, r)
	}
	return r, err
}

// ErrTooEarly: a tombstone must stay for longer.
var ErrTooEarly = errors.New("nodes that are cut off may still issue values of this sequence")

// Purge removes the tombstone of a deleted sequence. Then nothing remembers which values were issued: a
// new sequence with this name begins where its definition says. It returns ErrTooEarly while nodes that
// are cut off may issue values (S18): see Record.IssuableFor.
func (o Operator) Purge(ctx context.Context, name string) error {
	for {
		v, ctx, err := o.look(ctx, name)
		switch {
		case err != nil:
			return err
		case v.record.Kind() == None:
			return ErrNotFound
		case v.record.Kind() != Tombstone:
			return errors.New("the sequence is in use. Delete it first")
		//mutant:s18-early-purge by TestNoValueOfAnyLifeComesTwice -> case false:
		case v.record.IssuableFor(*v.state) > 0:
			return ErrTooEarly
		}
		if err := o.deleteSecret(ctx, v.record.ID); err != nil {
			return err
		}
		next := v.state.after(name)
		next.Purged = max(next.Purged, v.record.Gen)
		if err = o.Store.Multi(ctx, append(v.setState(next), v.checkCluster())...); err == nil {
			o.forgetKeys(ctx, *v.record)
			err = o.Store.Delete(ctx, recordPath(name), v.stat.Version)
		}
		if !outpaced(err) {
			return err
		}
	}
}

// outpaced reports whether a write failed because another one was faster.
func outpaced(err error) bool {
	return errors.Is(err, store.ErrBadVersion) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNoNode)
}

// errNotSent: a write was not sent, because the node may not take positions now.
var errNotSent = errors.New("the write was not sent")

// notMade reports whether it is certain that a write was not made, although ZooKeeper can be reached.
func notMade(err error) bool { return errors.Is(err, errNotSent) || outpaced(err) }

// update changes a record and /seq in one write, and tries again if another write was faster. old is
// nil if there is no record, and jump is false for other changes.
func (o Operator) update(
	ctx context.Context, name string, jump bool, change func(st State, old *Record) (Record, error),
) (Record, error) {
	for {
		v, bound, err := o.look(ctx, name)
		if err != nil {
			return Record{}, err
		}
		r, err := change(*v.state, v.record)
		if err != nil {
			return Record{}, err
		}
		var key []store.Op
		if v.record == nil || v.record.ID != r.ID {
			if r, key, err = o.secretFor(bound, r, v.record); err != nil {
				return Record{}, err
			}
		}
		r = r.written(nonce(), o.By)
		if data := r.marshal(); len(data) > maxRecord {
			return Record{}, fmt.Errorf("the record has %d bytes, at most %d are allowed", len(data), maxRecord)
		}
		if jump {
			if err := o.guard(ctx, name, v); err != nil {
				return Record{}, err
			}
		}
		if err = o.commit(bound, name, v, r, key); err == nil && v.record != nil && v.record.ID != r.ID {
			err = o.deleteSecret(ctx, v.record.ID)
		}
		if !outpaced(err) {
			return r, err
		}
	}
}

// look reads /seq and a record. Writes that go by them must use the context that look returns: in another
// session ZooKeeper may have lost data, and versions may have come back.
func (o Operator) look(ctx context.Context, name string) (view, context.Context, error) {
	if err := o.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return view{}, ctx, err
	}
	ctx = store.OnSession(ctx, o.Store.SessionID())
	found, err := o.Store.GetAll(ctx, clusterPath, statePath, recordPath(name))
	if err != nil {
		return view{}, ctx, err
	}
	v, err := parseView(found)
	if err == nil && (v.state == nil || v.cluster == nil) {
		err = ErrNoState
	}
	return v, ctx, err
}

func (o Operator) commit(ctx context.Context, name string, v view, r Record, also []store.Op) error {
	ops := append(v.setState(v.state.after(name)), v.checkCluster())
	if v.record == nil || r.Keyed() {
		if err := o.Store.EnsureRoot(ctx, r.dirs(name)...); err != nil {
			return err
		}
	}
	if v.record != nil {
		return o.Store.Multi(ctx, append(append(ops, setRecord(name, r, v.stat.Version)...), also...)...)
	}
	return o.Store.Multi(ctx, append(append(ops, also...), createRecord(name, r))...)
}
