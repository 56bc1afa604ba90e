package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// update changes the records of a name and /seq in one write, and tries again if another write was faster. jump is
// false for changes that need no guard.
//
// Besides the errors of change and of the store, it returns ErrNoState, and record.ErrDamaged or record.ErrUnknownMode
// for a record that cannot be used. It returns a *NotFollowedError if nodes have not followed the last change before a
// jump, or have not followed a far jump in time. In the second case Made is set. If the wait itself fails after the
// change was made, update returns ErrMade.
func (s Commands) update(
	ctx context.Context, name string, jump bool, change func(v view) (writes, error),
) (record.Record, error) {
	type last struct{ changes, incarnation int64 }
	var guarded *last
	for {
		v, bound, err := s.look(ctx, name)
		if err != nil {
			return record.Record{}, err
		}
		after, err := change(v)
		if err != nil {
			return record.Record{}, err
		}
		var ops []store.Op
		replaced := v.Record == nil || v.Record.ID != after.own.ID
		if replaced {
			if after.own, ops, err = s.mapKeyFor(bound, after.own, v.Record); err != nil {
				return record.Record{}, err
			}
		}
		now := last{v.State.LastChange(name), v.Incarnation()}
		if jump && (guarded == nil || *guarded != now) {
			if err := s.guard(ctx, name, v, v.isFarJump(name, after)); err != nil {
				return record.Record{}, err
			}
			guarded = &now
			if len(after.sections) > 0 {
				continue // owners have renewed some meanwhile
			}
		}
		r, err := s.commit(bound, name, v, after, ops)
		if err == nil && v.Record != nil && replaced {
			err = s.deleteMapKey(ctx, v.Record.ID)
		}
		if store.Outpaced(err) {
			continue
		}
		//mutant:s34-unheard by internal/core/seq:TestFarJumpsAreHeard -> if false {
		if err == nil && v.isFarJump(name, after) {
			at := coordinator.Change{Number: v.State.Changes + 1, Incarnation: v.Incarnation()}
			err = s.await(ctx, at, true, true)
			if err != nil && !errors.As(err, new(*NotFollowedError)) {
				err = fmt.Errorf("%w: %w", ErrMade, err)
			}
		}
		return r, err
	}
}

// writes has the records that an operator writes in one transaction: that of a name, and of a family those of its
// sections. before are the operations that come before these writes.
type writes struct {
	before   []store.Op
	own      record.Record
	sections []sectionWrite
}

type sectionWrite struct {
	foundRecord
	after record.Record
}

// commit writes the records of a change. also are the operations that belong to them.
func (s Commands) commit(
	ctx context.Context, name string, v view, after writes, also []store.Op,
) (r record.Record, err error) {
	ops, nonce := append(v.SetStateOps(v.State.After(name)), v.CheckClusterOp()), record.NewNonce("")
	ops = append(append(ops, after.before...), also...)
	if v.Record == nil || after.own.Keyed() {
		if err := s.Store.EnsureRoot(ctx, after.own.Dirs(name)...); err != nil {
			return record.Record{}, err
		}
	}
	write := func(e foundRecord, r record.Record) (record.Record, error) {
		r = r.Stamped(nonce, s.By)
		if data := r.Marshal(); len(data) > record.MaxBytes {
			return r, fmt.Errorf("the record has %d bytes, at most %d are allowed", len(data), record.MaxBytes)
		}
		if e.record == nil {
			ops = append(ops, record.CreateOp(e.name, r))
		} else {
			ops = append(ops, record.SetOps(e.name, r, e.version)...)
		}
		return r, nil
	}
	if r, err = write(foundRecord{name, v.Record, v.Stat.Version, 0}, after.own); err != nil {
		return record.Record{}, err
	}
	for _, section := range after.sections {
		if _, err := write(section.foundRecord, section.after); err != nil {
			return record.Record{}, err
		}
	}
	return r, s.Store.Multi(ctx, ops...)
}
