package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Operator has the commands of an operator on a cluster's records. Its methods follow the same protocol as nodes. So no
// ID is issued twice, although holders act at the same time. Each method but Roster returns a *ClocksError if the
// clock of this machine cannot be trusted. Thaw is a function, and asks no clock.
type Operator struct {
	Store store.Store
	// Now is our clock in Unix milliseconds.
	Now func() int64
	// By is the operator's name, for the records.
	By string
}

// ClocksError: our clock differs by more than limits.ClocksAgree from the leader's. So it cannot tell whether a lease
// has ended.
type ClocksError struct{ Ahead time.Duration }

func (e *ClocksError) Error() string {
	way := "ahead of"
	if e.Ahead < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s that of ZooKeeper's leader, so it cannot tell "+
		"whether a lease has expired. Set the clock right, or run this on another machine", e.Ahead.Abs(), way)
}

// readClusterAndTime reads the cluster's record and the time.
func (o Operator) readClusterAndTime(ctx context.Context) (Cluster, twoClocks, error) {
	cl, err := ReadCluster(ctx, o.Store)
	if err != nil {
		return cl, twoClocks{}, err
	}
	r, err := o.compareClock(ctx)
	if err != nil {
		return cl, twoClocks{}, err
	}
	if off, uncertain := r.ahead(), (r.Acked-r.Sent)/2; off-uncertain > clocksAgree || off+uncertain < -clocksAgree {
		return cl, twoClocks{}, &ClocksError{time.Duration(off) * time.Millisecond}
	}
	now := o.Now()
	leader := r.leaderNow(now)
	return cl, twoClocks{min(now, leader), max(now, leader+r.Acked-r.Sent)}, nil
}

// compareClock compares our clock with the leader's by creating an ephemeral record. Its name is not that of a worker's
// lock.
func (o Operator) compareClock(ctx context.Context) (Reading, error) {
	path := livePath + "/clock-" + store.Nonce()
	sent := o.Now()
	_, err := o.Store.Create(ctx, path, nil, store.Ephemeral)
	if errors.Is(err, store.ErrNoNode) {
		if err = ensureRoot(ctx, o.Store); err == nil {
			return o.compareClock(ctx)
		}
	}
	acked := o.Now()
	if err != nil {
		return Reading{}, err
	}
	_, stat, err := o.Store.Get(ctx, path)
	if err == nil {
		err = o.Store.Delete(ctx, path, stat.Version)
	}
	return Reading{Sent: sent, Acked: acked, Stamp: stat.Ctime}, err
}

// Freeze freezes registration for d. It shortens no freeze. A d of 0 means until the horizon: a holder that ZooKeeper
// has lost may serve for so long. Freeze returns the cluster's record before and after.
func (o Operator) Freeze(ctx context.Context, d time.Duration) (before, after Cluster, err error) {
	before, now, err := o.readClusterAndTime(ctx)
	if err != nil {
		return before, before, err
	}
	err = updateCluster(ctx, o.Store, func(cl *Cluster) bool {
		before = *cl
		until := now.late + d.Milliseconds()
		if d == 0 {
			frozen := cl.Freeze(now.late)
			cl.Horizon, until = frozen.Horizon, frozen.FrozenUntil
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
	cl, now, err := o.readClusterAndTime(ctx)
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
	case e.Missing:
		_, err = st.Create(ctx, path, freeSlot().marshal(), store.Persistent)
	case e.Slot.StandsIn:
		_, err = st.Set(ctx, path, freeSlot().marshal(), e.Stat.Version)
	default:
		return false, nil
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrBadVersion) {
		return false, nil
	}
	return err == nil, err
}

// StillFrozenError: registration is frozen until Until, Unix ms, so ZooKeeper's record of the slot may be older than
// its holder's. By is the operator who froze it, "" if ZooKeeper lost data.
type StillFrozenError struct {
	Worker int
	Until  int64
	By     string
}

func (e *StillFrozenError) Error() string {
	until, text := time.UnixMilli(e.Until).UTC().Format(time.RFC3339), "ZooKeeper's record of worker %d may be out of date"
	if e.By != "" {
		return fmt.Sprintf("registration is frozen until %s by operator %s, so "+text, until, e.By, e.Worker)
	}
	return fmt.Sprintf("registration is frozen until %s, so "+text+". Let its holder come back, or wait", until, e.Worker)
}

// ChangedError: the slot has changed since Examine read it.
type ChangedError struct {
	Worker int
	Slot   Slot
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("worker %d has changed meanwhile, so nothing was done: node %s (%s) holds it at term %d",
		e.Worker, e.Slot.Node, e.Slot.Name, e.Slot.Term)
}

// ErrNotHeld: no node holds the slot.
var ErrNotHeld = errors.New("no node holds the worker")

// Examined is a slot as Examine read it.
type Examined struct {
	Entry
	Cluster      Cluster
	Availability Availability
}

// Examine reads a slot, and judges by our clock and the leader's whether it is free.
func (o Operator) Examine(ctx context.Context, worker int) (Examined, error) {
	cl, now, err := o.readClusterAndTime(ctx)
	if err != nil {
		return Examined{}, err
	}
	e, err := readSlot(ctx, o.Store, cl, worker)
	return Examined{e, cl, cl.Availability(e.Slot, e.Live, now.early, now.late)}, err
}

// ForceRelease releases a slot that its holder has not given back. The lease bound stays (C30), and the next holder
// begins there, so no ID is issued twice even if the holder runs. A higher term and a new nonce fence the holder at its
// next heartbeat. The record is unconfirmed, so that a holder that ZooKeeper had lost can still restore its own.
//
// ForceRelease replaces a record that is missing or cannot be read by a stand-in, which keeps the slot for the
// longest lease. Errors include ErrNotHeld, *StillFrozenError, *ChangedError if the slot is not as found any more,
// *OtherClusterError, *ClocksError, and those of the store.
func (o Operator) ForceRelease(ctx context.Context, found Examined) (Entry, error) {
	for {
		e, cl, now, err := o.reread(ctx, found)
		if err != nil {
			return e, err
		}
		next := e.Slot
		if next.Term == 0 || next.Released {
			return e, ErrNotHeld
		}
		if next.Term < 0 {
			next = Slot{LeaseUntil: cl.FreezeEnd(now.late), StandsIn: true}
		} else {
			next.Term, next.Nonce, next.Confirmed = next.Term+1, store.Nonce(), false
			next.Released, next.ReleasedBy, next.Phase = true, o.By, "released"
		}
		if e.Missing {
			_, err = o.Store.Create(ctx, SlotPath(e.Worker), next.marshal(), store.Persistent)
		} else {
			_, err = o.Store.Set(ctx, SlotPath(e.Worker), next.marshal(), e.Stat.Version)
		}
		switch {
		case err == nil:
			return readSlot(ctx, o.Store, cl, e.Worker)
		case !mustReread(err):
			return e, err
		}
		// A heartbeat came in between: read again whether the holder is the same.
	}
}

// reread reads a slot once more. It returns an error if the slot is not as found, or is frozen.
func (o Operator) reread(ctx context.Context, found Examined) (Entry, Cluster, twoClocks, error) {
	cl, now, err := o.readClusterAndTime(ctx)
	switch {
	case err != nil:
		return found.Entry, cl, now, err
	case cl.UUID != found.Cluster.UUID:
		return found.Entry, cl, now, &OtherClusterError{Found: cl.UUID, Ours: found.Cluster.UUID}
	case cl.Frozen(now.early):
		return found.Entry, cl, now, &StillFrozenError{found.Worker, cl.FrozenUntil, cl.FrozenBy}
	}
	e, err := readSlot(ctx, o.Store, cl, found.Worker)
	changed := e.Missing != found.Missing || e.Slot.Term != found.Slot.Term || e.Slot.Nonce != found.Slot.Nonce
	// A holder whose lease had ended may have come back. The operator must decide again.
	back := found.Availability == Free && cl.Availability(e.Slot, e.Live, now.early, now.late) != Free
	if err == nil && (changed || back) {
		err = &ChangedError{found.Worker, e.Slot}
	}
	return e, cl, now, err
}
