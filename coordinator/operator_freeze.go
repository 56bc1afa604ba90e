package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Freeze freezes registration for d. It shortens no freeze. A d of 0 means until the horizon: a holder that ZooKeeper
// has lost may serve for so long. Freeze returns the cluster's record before and after.
func (o Operator) Freeze(ctx context.Context, d time.Duration) (before, after Cluster, err error) {
	before, now, err := o.begin(ctx)
	if err != nil {
		return before, before, err
	}
	err = updateCluster(ctx, o.Store, func(cl *Cluster) bool {
		before = *cl
		until := now.late + d.Milliseconds()
		if d == 0 {
			cl.Horizon = cl.nextHorizon(now.late)
			until = cl.Horizon
		}
		if now.early >= cl.FrozenUntil {
			cl.FrozenBy = o.By
		}
		cl.FrozenUntil = max(cl.FrozenUntil, until)
		after = *cl
		return after != before
	})
	return before, after, err
}

// Frozen returns the cluster's record, and reports whether its freeze still runs by our clock or by the leader's.
func (o Operator) Frozen(ctx context.Context) (Cluster, bool, error) {
	cl, now, err := o.begin(ctx)
	return cl, now.early < cl.FrozenUntil, err
}

// ErrFreezeChanged: the cluster's freeze has changed since the caller read it.
var ErrFreezeChanged = errors.New("the freeze of registration has changed meanwhile, so nothing was done. " +
	"Look at the freeze again")

// Thaw ends a freeze of registration early. It frees the workers whose records were lost, and returns their number. The
// caller must know that none of these workers has a holder left. seen is the cluster's record that the caller has read.
// If another freeze has come since, Thaw returns ErrFreezeChanged.
func Thaw(ctx context.Context, st store.Store, seen Cluster) (freed int, err error) {
	changed := false
	err = updateCluster(ctx, st, func(cl *Cluster) bool {
		was := *cl
		if changed = !was.frozenAs(seen); changed {
			return false
		}
		cl.FrozenUntil, cl.FrozenBy = 0, ""
		return *cl != was
	})
	if changed {
		err = ErrFreezeChanged
	}
	if err != nil {
		return 0, err
	}
	entries, err := ReadSlots(ctx, st, seen)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		done, err := freeLost(ctx, st, e)
		if err != nil {
			return freed, err
		}
		if done {
			freed++
		}
	}
	return freed, nil
}

// frozenAs reports whether two records have the same freeze.
func (c Cluster) frozenAs(seen Cluster) bool {
	return c.UUID == seen.UUID && c.Incarnation == seen.Incarnation && c.FrozenUntil == seen.FrozenUntil
}

// freeLost frees a slot whose record was lost. It returns false if there was nothing to do, or if the holder was
// faster.
func freeLost(ctx context.Context, st store.Store, e Entry) (bool, error) {
	path, err := SlotPath(e.Worker), error(nil)
	switch {
	case e.Absent:
		_, err = st.Create(ctx, path, freeSlot().marshal(), store.Persistent)
	case e.Slot.Lost:
		_, err = st.Set(ctx, path, freeSlot().marshal(), e.Stat.Version)
	default:
		return false, nil
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrBadVersion) {
		return false, nil
	}
	return err == nil, err
}
