package node

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/worker"
)

// Reserve takes between 1 and k IDs of one tick. It waits for the next tick if the present one
// has no IDs left. It waits for a clock that went back if the cluster's rollback policy says
// so. Its errors are *Refusal. If the context ends, the cause is CauseStopping.
func (n *Node) Reserve(ctx context.Context, k int) (worker.Run, error) {
	for {
		t := n.serving.Load()
		if t == nil {
			return worker.Run{}, n.refusal.Load()
		}
		run, err := t.gen.Reserve(ctx, k)
		if err == nil {
			return run, nil
		}
		if !n.replaced(t, err) {
			return run, n.explain(t, err)
		}
	}
}

// Try does what Reserve does, but where that waits it returns an empty Run and a Pause. waited is
// how long requests have waited for a clock that went back.
func (n *Node) Try(k int, waited time.Duration) (worker.Run, worker.Pause, error) {
	for {
		t := n.serving.Load()
		if t == nil {
			return worker.Run{}, worker.Pause{}, n.refusal.Load()
		}
		run, pause, err := t.gen.Try(k, waited)
		if err == nil {
			return run, pause, nil
		}
		if !n.replaced(t, err) {
			return run, pause, n.explain(t, err)
		}
	}
}

// replaced reports whether another tenure has replaced t while a request waited for t.
func (n *Node) replaced(t *tenure, err error) bool {
	return err == worker.ErrClosed && n.serving.Load() != t
}

// explain returns the refusal for an error of a tenure's generator.
func (n *Node) explain(t *tenure, err error) error {
	var behind *worker.BehindError
	switch {
	case errors.As(err, &behind):
		n.wakeIfBehind(behind.Behind)
		return newRefusal(Refusal{Cause: CauseClockBehind, Behind: behind.Behind})
	case errors.Is(err, worker.ErrTimeExhausted):
		return newRefusal(Refusal{Cause: CauseTimeUsedUp, Era: era(n.peek().layout)})
	case errors.Is(err, worker.ErrLimit):
		return n.refusalAtBound()
	case errors.Is(err, worker.ErrClosed):
		return n.refusal.Load() // the tenure has ended, and no other one serves
	}
	return errStopping
}

var errStopping = newRefusal(Refusal{Cause: CauseStopping, Phase: Stopping})

// refusalAtBound returns the refusal of a clock that has reached the tenure's bound. It says why the bound has not
// moved on.
func (n *Node) refusalAtBound() *Refusal {
	n.mu.Lock()
	defer n.mu.Unlock()
	lease := n.view.Load().Claim.LeaseUntil
	switch {
	case n.now() >= lease:
		return newRefusal(Refusal{Cause: CauseLeaseExpired})
	case n.borrow > 0 && lease <= n.reservedUntil:
		return newRefusal(Refusal{Cause: CauseLeaseBorrowed})
	case n.stalledLocked():
		return newRefusal(Refusal{Cause: CauseReservedBound, StuckBy: StuckByStall})
	case n.disk.err != nil:
		return newRefusal(Refusal{Cause: CauseReservedBound, StuckBy: StuckByError})
	}
	return newRefusal(Refusal{Cause: CauseReservedBound, StuckBy: StuckByPause})
}

// wakeIfBehind wakes the keeper if the clock is behind by more than limits.RotateBehind: with a fresh slot the node may
// serve sooner than with the old one. It wakes the keeper at most once a second, however many requests come.
func (n *Node) wakeIfBehind(by time.Duration) {
	now := n.monotonic()
	if last := n.keeperWokenAt.Load(); by > limits.RotateBehind && now-last > int64(time.Second) &&
		n.keeperWokenAt.CompareAndSwap(last, now) {
		wake(n.wakeKeeper)
	}
}

// Ceiling returns how many IDs the node can make in a second, or in one tick if a tick is longer.
// It is 0 while the node does not serve.
func (n *Node) Ceiling() int64 {
	if t := n.serving.Load(); t != nil {
		return t.gen.Ceiling()
	}
	return 0
}

// Waits returns how many reservations have begun to wait for a tick so far.
func (n *Node) Waits() int64 { return n.meter.worker.TickWaits.Load() }
