package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// StillFrozenError: registration is frozen until Until, Unix ms, so ZooKeeper's record of the slot may be older than
// its holder's.
type StillFrozenError struct {
	Worker int
	Until  int64
}

func (e *StillFrozenError) Error() string {
	return fmt.Sprintf("registration is frozen until %s, so ZooKeeper's record of worker %d may be out of date. "+
		"Let its holder come back, or wait",
		time.UnixMilli(e.Until).UTC().Format(time.RFC3339), e.Worker)
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
	cl, now, err := o.begin(ctx)
	if err != nil {
		return Examined{}, err
	}
	e, err := readSlot(ctx, o.Store, cl, worker)
	return Examined{e, cl, cl.JudgeFree(e.Slot, e.Live, now.early, now.late)}, err
}

// ForceRelease releases a slot that its holder has not given back. The lease bound stays (C30), and the next holder
// begins there, so no ID is issued twice even if the holder runs. A higher term and a new nonce fence the holder at its
// next heartbeat. The record is unconfirmed, so that a holder that ZooKeeper had lost can still put its own back.
//
// ForceRelease replaces a record that is missing or cannot be read by a Lost record, which keeps the slot for the
// longest lease. Errors are ErrNotHeld, *StillFrozenError, *ChangedError if the slot is not as found any more, and
// those of the store.
func (o Operator) ForceRelease(ctx context.Context, found Examined) (Entry, error) {
	for {
		e, cl, now, err := o.again(ctx, found)
		if err != nil {
			return e, err
		}
		next := e.Slot
		if next.Term == 0 || next.Released {
			return e, ErrNotHeld
		}
		if next.Term < 0 {
			next = Slot{LeaseUntil: cl.lostUntil(now.late), Lost: true}
		} else {
			next.Term, next.Nonce, next.Confirmed = next.Term+1, randomNonce(), false
			next.Released, next.ReleasedBy, next.State = true, o.By, "released"
		}
		if e.Absent {
			_, err = o.Store.Create(ctx, SlotPath(e.Worker), next.marshal(), store.Persistent)
		} else {
			_, err = o.Store.Set(ctx, SlotPath(e.Worker), next.marshal(), e.Stat.Version)
		}
		switch {
		case err == nil:
			return readSlot(ctx, o.Store, cl, e.Worker)
		case !outpaced(err):
			return e, err
		}
		// A heartbeat came in between: read again whether the holder is the same.
	}
}

// again reads a slot once more. It returns an error if the slot is not as found, or is frozen.
func (o Operator) again(ctx context.Context, found Examined) (Entry, Cluster, moment, error) {
	cl, now, err := o.begin(ctx)
	switch {
	case err != nil:
		return found.Entry, cl, now, err
	case cl.UUID != found.Cluster.UUID:
		return found.Entry, cl, now, &OtherClusterError{Found: cl.UUID, Ours: found.Cluster.UUID}
	case cl.Frozen(now.early):
		return found.Entry, cl, now, &StillFrozenError{found.Worker, cl.FrozenUntil}
	}
	e, err := readSlot(ctx, o.Store, cl, found.Worker)
	changed := e.Absent != found.Absent || e.Slot.Term != found.Slot.Term || e.Slot.Nonce != found.Slot.Nonce
	// A holder whose lease had ended may have come back. The operator must decide again.
	back := found.Availability == Free && cl.JudgeFree(e.Slot, e.Live, now.early, now.late) != Free
	if err == nil && (changed || back) {
		err = &ChangedError{found.Worker, e.Slot}
	}
	return e, cl, now, err
}
