package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// Freeze keeps everybody off some workers for a time, unless they are kept for
// longer already. A time of 0 is the longest lease and lossTolerance: for so long an
// owner may live that ZooKeeper has forgotten. Freeze returns the cluster as it was
// and as it is.
func (h ByHand) Freeze(ctx context.Context, workers WorkerSet, d time.Duration) (before, after Cluster, err error) {
	before, now, err := h.begin(ctx)
	if err != nil {
		return before, before, err
	}
	_, err = updateCluster(ctx, h.Store, func(cl *Cluster) bool {
		before = *cl
		ms := d.Milliseconds()
		if d == 0 {
			ms = cl.LeaseMs + lossTolerance
		}
		if now.early >= cl.FrozenUntil {
			cl.Open, cl.FrozenBy = AllWorkers(cl.Slots), h.By
		}
		cl.FrozenUntil, cl.Open = max(cl.FrozenUntil, now.late+ms), cl.Open.Minus(workers)
		after = *cl
		return after != before
	})
	return before, after, err
}

// Frozen reads the cluster's record, and tells whether its freeze has not yet ended by
// either clock.
func (h ByHand) Frozen(ctx context.Context) (Cluster, bool, error) {
	cl, now, err := h.begin(ctx)
	return cl, now.early < cl.FrozenUntil, err
}

// ErrFreezeChanged: the cluster's freeze is not the one that was looked at.
var ErrFreezeChanged = errors.New("coordinator: the freeze of registration has changed meanwhile: look at it again; nothing was changed")

// Thaw ends a freeze of registration early for some workers, or for all of them if
// workers is empty, and frees those of them whose records were lost. The caller has
// to know that no owner of one of them is left. seen is the cluster's record as that
// was decided on: ErrFreezeChanged where another freeze has come since. Thaw returns
// how many slots it has freed.
func Thaw(ctx context.Context, store zkstore.Store, seen Cluster, workers WorkerSet) (freed int, err error) {
	changed := false
	_, err = updateCluster(ctx, store, func(cl *Cluster) bool {
		was := *cl
		if changed = !was.frozenAs(seen); changed {
			return false
		}
		if workers != "" && was.FrozenUntil != 0 {
			cl.Open = cl.Open.Union(workers)
		}
		if workers == "" || cl.Open == AllWorkers(cl.Slots) {
			cl.FrozenUntil, cl.Open, cl.FrozenBy = 0, "", ""
		}
		return *cl != was
	})
	switch {
	case errors.Is(err, zkstore.ErrNoNode):
		return 0, ErrNoCluster
	case err != nil:
		return 0, err
	case changed:
		return 0, ErrFreezeChanged
	}
	entries, err := ReadSlots(ctx, store, seen)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if workers != "" && !workers.Has(e.Worker) {
			continue
		}
		done, err := freeLost(ctx, store, e)
		if err != nil {
			return freed, err
		}
		if done {
			freed++
		}
	}
	return freed, nil
}

// frozenAs tells whether a record has the same freeze as another.
func (c Cluster) frozenAs(seen Cluster) bool {
	return c.UUID == seen.UUID && c.Incarnation == seen.Incarnation && c.FrozenUntil == seen.FrozenUntil && c.Open == seen.Open
}

// freeLost frees a slot whose record was lost. It reports whether there was
// anything to do: its owner may be faster.
func freeLost(ctx context.Context, store zkstore.Store, e Entry) (bool, error) {
	path, err := slotPath(e.Worker), error(nil)
	switch {
	case e.Absent:
		_, err = store.Create(ctx, path, freeSlot().marshal(), zkstore.Persistent)
	case e.Slot.Lost:
		_, err = store.Set(ctx, path, freeSlot().marshal(), e.Stat.Version)
	default:
		return false, nil
	}
	if errors.Is(err, zkstore.ErrExists) || errors.Is(err, zkstore.ErrBadVersion) {
		return false, nil
	}
	return err == nil, err
}
