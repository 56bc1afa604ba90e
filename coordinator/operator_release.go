package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// StillFrozenError: slots are kept for owners that ZooKeeper may have
// forgotten, so nothing can be built on what it says of them.
type StillFrozenError struct {
	Worker int
	Until  int64
}

func (e *StillFrozenError) Error() string {
	return fmt.Sprintf("coordinator: registration is frozen until %s, and ZooKeeper may not know the last of worker %d: let its owner come back, or wait",
		time.UnixMilli(e.Until).UTC().Format(time.RFC3339), e.Worker)
}

// ChangedError: a slot is not as it was when it was looked at.
type ChangedError struct {
	Worker int
	Slot   Slot
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("coordinator: worker %d has changed meanwhile: node %s (%s) has it at term %d; nothing was changed", e.Worker, e.Slot.Node, e.Slot.Name, e.Slot.Term)
}

// ErrConnected: the node that a slot was taken from has a session, so it runs.
var ErrConnected = errors.New("coordinator: its node is connected to ZooKeeper, so it runs")

// ErrNotHeld: nobody holds the slot that is to be taken away.
var ErrNotHeld = errors.New("coordinator: nobody holds it")

// Holding is a slot as it was found by somebody who is about to release it.
type Holding struct {
	Entry
	Cluster      Cluster
	Availability Availability
}

// Examine looks at a slot, by our clock and the leader's.
func (h ByHand) Examine(ctx context.Context, worker int) (Holding, error) {
	cl, now, err := h.begin(ctx)
	if err != nil {
		return Holding{}, err
	}
	e, err := ReadSlot(ctx, h.Store, cl, worker)
	return Holding{e, cl, cl.JudgeFree(e.Slot, e.Live, now.early, now.late)}, err
}

// TakeAway releases a slot that its holder has not given back. The bound stays
// where it is: whoever takes the slot begins there, so that nothing is issued
// twice though the holder may be running, cut off or not. A higher term and
// another nonce fence it as soon as it looks. The record is left unsettled, as a
// newcomer's is: an owner whom ZooKeeper had forgotten still puts back its own.
//
// A record that is gone or cannot be read is replaced by one that is kept for
// the longest lease. Errors are ErrNotHeld, *StillFrozenError, *ChangedError when
// the slot is not what found says any more, and those of the store.
func (h ByHand) TakeAway(ctx context.Context, found Holding) (Entry, error) {
	for {
		e, cl, now, err := h.again(ctx, found)
		if err != nil {
			return e, err
		}
		next := e.Slot
		if next.Term == 0 || next.Released {
			return e, ErrNotHeld
		}
		if next.Term < 0 {
			next = Slot{H: now.late + cl.LeaseMs + lossTolerance, Lost: true}
		} else {
			next.Term, next.Nonce, next.Settled = next.Term+1, randomNonce(), false
			next.Released, next.ReleasedBy, next.State = true, h.By, "released"
			if !next.Stopped {
				next.AheadMs = max(0, next.Reported-e.Stat.Mtime)
			}
		}
		if e.Absent {
			_, err = h.Store.Create(ctx, slotPath(e.Worker), next.marshal(), zkstore.Persistent)
		} else {
			_, err = h.Store.Set(ctx, slotPath(e.Worker), next.marshal(), e.Stat.Version)
		}
		switch {
		case err == nil:
			return ReadSlot(ctx, h.Store, cl, e.Worker)
		case !errors.Is(err, zkstore.ErrBadVersion) && !errors.Is(err, zkstore.ErrExists) && !errors.Is(err, zkstore.ErrNoNode):
			return e, err
		}
		// A heartbeat came in between: look whether it is still the same holder's.
	}
}

// LowerBound has a slot that was taken away begin now, and not where its holder
// may issue to by its lease: a clock's error above what is now, by our clock and
// the leader's, and what was heard of the holder's. It never goes below notBelow, the
// bound of the holder's state directory in Unix milliseconds; 0 if that is lost. The
// caller knows that the node does not run, and will not be started with its state:
// else it and the next holder may issue the same IDs. So they may where the state is
// lost and the node issued by a clock that was ahead while ZooKeeper could not hear it.
//
// Errors are those of TakeAway and ErrConnected.
func (h ByHand) LowerBound(ctx context.Context, found Holding, notBelow int64) (Entry, error) {
	for {
		e, cl, now, err := h.again(ctx, found)
		switch {
		case err != nil:
			return e, err
		case e.Live:
			return e, ErrConnected
		case !e.Slot.Released || e.Slot.ReleasedBy == "":
			return e, fmt.Errorf("coordinator: worker %d was not taken away by hand", e.Worker)
		}
		next := e.Slot
		next.H, next.Lowered = lowered(next, cl, now.late, notBelow), true
		stat, err := h.Store.Set(ctx, slotPath(e.Worker), next.marshal(), e.Stat.Version)
		if errors.Is(err, zkstore.ErrBadVersion) || errors.Is(err, zkstore.ErrNoNode) {
			continue
		}
		if err == nil {
			e.Slot, e.Stat = next, stat
		}
		return e, err
	}
}

// lowered is the bound that LowerBound gives a slot, in Unix milliseconds. What its
// holder has issued ends before what was heard of it, a clock's error and what it may
// have borrowed on top: before now by its clock, which may have been ahead of ours
// (AheadMs), before what it reported or had reached, and before where it stopped,
// which it may say without another report.
func lowered(s Slot, cl Cluster, now, notBelow int64) int64 {
	heard := max(now+s.AheadMs, s.StoppedM, s.Reached, s.Reported)
	return max(min(s.H, heard+cl.BorrowMs+lossTolerance), notBelow)
}

// again reads a slot that has to be as it was found, in a cluster that is not
// frozen.
func (h ByHand) again(ctx context.Context, found Holding) (Entry, Cluster, moment, error) {
	cl, now, err := h.begin(ctx)
	switch {
	case err != nil:
		return found.Entry, cl, now, err
	case cl.UUID != found.Cluster.UUID:
		return found.Entry, cl, now, &OtherClusterError{Found: cl.UUID, Ours: found.Cluster.UUID}
	case cl.Frozen(found.Worker, now.early):
		return found.Entry, cl, now, &StillFrozenError{found.Worker, cl.FrozenUntil}
	}
	e, err := ReadSlot(ctx, h.Store, cl, found.Worker)
	changed := e.Absent != found.Absent || e.Slot.Term != found.Slot.Term || e.Slot.Nonce != found.Slot.Nonce
	// One whose lease was over may have come back: that is another question.
	back := found.Availability == Free && cl.JudgeFree(e.Slot, e.Live, now.early, now.late) != Free
	if err == nil && (changed || back) {
		err = &ChangedError{found.Worker, e.Slot}
	}
	return e, cl, now, err
}
