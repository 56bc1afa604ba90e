package seq

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// GuardTime is the longest time that a jump waits for the nodes. A jump is a change that the skip after a loss of data
// does not cover: a creation, a deletion, or a raised next value.
const GuardTime = 30 * time.Second

// NotFollowedError: connected nodes have not followed the last change of a name within GuardTime. Nothing was changed.
type NotFollowedError struct{ Behind []coordinator.Entry }

func (e *NotFollowedError) Error() string { return "not all nodes have followed the last change" }

// Clock is the time that an Operator goes by.
type Clock interface {
	Now() time.Time
	// Sleep blocks for d, or until ctx ends. Then it returns the error of ctx.
	Sleep(ctx context.Context, d time.Duration) error
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Now returns the time of the operator's clock, Unix milliseconds.
func (o Operator) Now() int64 { return o.clock().Now().UnixMilli() }

func (o Operator) clock() Clock {
	if o.Clock == nil {
		return machineClock{}
	}
	return o.Clock
}

// guard blocks until all connected nodes have followed the last change of a name, or until GuardTime has passed (S29).
// Only a node that knows of a jump can put it back. So two jumps of a name must not follow each other unseen: ZooKeeper
// could lose both. v is what was read of the name.
func (o Operator) guard(ctx context.Context, name string, v view) error {
	if v.record == nil && !slices.Contains(v.state.Changed, name) {
		return nil // there is no last change
	}
	// If the last changes do not have the name, lastChange returns a later one of another name: the wait may be longer.
	after := coordinator.Followed{Changes: v.state.lastChange(name) + 1, Incarnation: v.incarnation()}
	began, said := o.clock().Now(), false
	for {
		behind, err := o.behind(ctx, after)
		waited := o.clock().Now().Sub(began)
		switch {
		case err != nil && (waited > GuardTime || !errors.Is(err, store.ErrUnreachable)):
			return err
		//mutant:s29-no-guard by TestJumpsWaitForConnectedNodes -> case err == nil:
		case err == nil && len(behind) == 0:
			return nil
		case err == nil && waited > GuardTime:
			return &NotFollowedError{behind}
		case !said && waited > time.Second && o.Waiting != nil:
			said = true
			o.Waiting()
		}
		if err := o.clock().Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// behind returns the workers of connected nodes that have not followed the changes as far as at.
func (o Operator) behind(ctx context.Context, at coordinator.Followed) ([]coordinator.Entry, error) {
	cl, err := coordinator.ReadCluster(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	slots, err := coordinator.ReadSlots(ctx, o.Store, cl)
	return coordinator.NotFollowed(slots, at), err
}
