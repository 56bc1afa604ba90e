package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/worker"
)

// Reserve takes between 1 and k IDs of one tick. Its errors are *Refusal.
func (n *Node) Reserve(ctx context.Context, k int) (worker.Run, error) {
	for {
		t := n.serving.Load()
		if t == nil {
			return worker.Run{}, n.refusal.Load()
		}
		run, err := t.gen.Reserve(ctx, k)
		switch {
		case err == nil:
			return run, nil
		case err == worker.ErrClosed && n.serving.Load() != t:
			// Another has taken its place while this request waited.
		default:
			return worker.Run{}, n.explain(t, err)
		}
	}
}

// try is Reserve that does not wait: where a little would do, it says how long, and
// what the wait is for.
func (n *Node) try(k int, waited time.Duration) (*tenure, worker.Run, worker.Pause, error) {
	for {
		t := n.serving.Load()
		if t == nil {
			return nil, worker.Run{}, worker.Pause{}, n.refusal.Load()
		}
		run, pause, err := t.gen.Try(k, waited)
		switch {
		case err == nil:
			return t, run, pause, nil
		case err != worker.ErrClosed || n.serving.Load() == t:
			return t, run, pause, n.explain(t, err)
		}
	}
}

// explain returns why a tenure made no ID.
func (n *Node) explain(t *tenure, err error) error {
	var behind *worker.BehindError
	switch {
	case errors.As(err, &behind):
		n.behindOnce(behind.Behind)
		return &Refusal{Cause: CauseClockBehind, Behind: behind.Behind}
	case errors.Is(err, worker.ErrTimeExhausted):
		return &Refusal{Cause: CauseTimeUsedUp}
	case errors.Is(err, worker.ErrLimit):
		return n.atBound()
	case errors.Is(err, worker.ErrClosed):
		return n.refusal.Load() // dropped since we looked
	}
	return errStopping
}

var errStopping = &Refusal{Cause: CauseStopping, Phase: Stopping}

// atBound returns why the clock has reached the bound of a tenure.
func (n *Node) atBound() *Refusal {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.now() >= n.claim.H:
		return &Refusal{Cause: CauseLeaseOver}
	case n.borrow > 0 && n.claim.H <= n.m:
		return &Refusal{Cause: CauseLeaseBorrowed}
	case n.stalled():
		return &Refusal{Cause: CauseNoDurableBound, Bound: BoundStalled}
	case n.disk.err != nil:
		return &Refusal{Cause: CauseNoDurableBound, Bound: BoundUnwritable}
	}
	return &Refusal{Cause: CauseNoDurableBound, Bound: BoundLate}
}

// behindOnce has the keeper look at a rollback that a fresh slot may end sooner
// than the clock does; once a second, however many ask.
func (n *Node) behindOnce(by time.Duration) {
	now := n.mono()
	if last := n.kicked.Load(); by > limits.RotateBehind && now-last > int64(time.Second) && n.kicked.CompareAndSwap(last, now) {
		wake(n.kick)
	}
}

// Ready is nil when an ID would be made. It makes none.
func (n *Node) Ready() error {
	t := n.serving.Load()
	if t == nil {
		return n.refusal.Load()
	}
	if err := t.gen.Ready(); err != nil {
		return n.explain(t, err)
	}
	return nil
}

// Now is the clock that IDs are made by.
func (n *Node) Now() time.Time { return time.Unix(0, n.clock.Now()) }

// Layout returns the cluster's layout, or the zero Layout while it is not known.
func (n *Node) Layout() worker.Layout {
	return n.peek().layout
}

// Worker is the node in one line.
func (n *Node) Worker() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	number := "none"
	if n.held != nil {
		number = strconv.Itoa(n.held.worker)
	}
	return fmt.Sprintf("worker=%s term=%d node=%s name=%s state=%s", number, n.claim.Term, n.claim.Node, n.cfg.Labels.Name, n.phase)
}
