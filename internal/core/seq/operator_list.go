package seq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/core/store"
)

// Named is a record with its name.
type Named struct {
	Name string `json:"name"`
	Record
}

// List returns the sequences whose names begin with prefix, and the tombstones, by name. It returns
// ErrNoState if no node has served sequences yet.
func (o Operator) List(ctx context.Context, prefix string) ([]Named, State, error) {
	v, _, err := o.look(ctx, "x")
	if err != nil {
		return nil, State{}, err
	}
	buckets, err := o.Store.Children(ctx, recordsDir)
	if errors.Is(err, store.ErrNoNode) {
		return nil, *v.state, nil
	}
	if err != nil {
		return nil, State{}, err
	}
	found := make([][]Named, len(buckets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for k, bucket := range buckets {
		group.Go(func() (err error) {
			found[k], err = o.inBucket(ctx, recordsDir+"/"+bucket, prefix)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, State{}, err
	}
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return all, *v.state, nil
}

func (o Operator) inBucket(ctx context.Context, dir, prefix string) ([]Named, error) {
	children, err := o.Store.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	var names, paths []string
	for _, child := range children {
		if name := nameOf(child); strings.HasPrefix(name, prefix) {
			names, paths = append(names, name), append(paths, dir+"/"+child)
		}
	}
	found, err := o.Store.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var all []Named
	for k, f := range found {
		if !f.Found {
			continue // purged meanwhile
		}
		r, err := parseRecord(f.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[k], err)
		}
		all = append(all, Named{names[k], r})
	}
	return all, nil
}

// State returns the state of all sequences. It returns ErrNoState if no node has served sequences yet, and ErrDamaged.
func (o Operator) State(ctx context.Context) (st State, err error) {
	found, err := o.Store.GetAll(ctx, clusterPath, statePath)
	if err != nil {
		return State{}, err
	}
	v, err := parseView(found)
	switch {
	case err != nil:
		return State{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	case v.state == nil:
		return State{}, ErrNoState
	}
	return *v.state, nil
}

// Show returns the record of a sequence, or of its tombstone, and the state of all sequences. It
// returns ErrNotFound if there is none.
func (o Operator) Show(ctx context.Context, name string) (Record, State, error) {
	v, _, err := o.look(ctx, name)
	if err != nil {
		return Record{}, State{}, err
	}
	if v.record == nil {
		return Record{}, *v.state, ErrNotFound
	}
	return *v.record, *v.state, nil
}
