package operator

import (
	"context"
	"time"
)

// Clock is the time that an operator goes by.
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
func (s Commands) Now() int64 { return s.clock().Now().UnixMilli() }

// Sleep blocks for d by the operator's clock, or until ctx ends. Then it returns the error of ctx.
func (s Commands) Sleep(ctx context.Context, d time.Duration) error { return s.clock().Sleep(ctx, d) }

func (s Commands) clock() Clock {
	if s.Clock == nil {
		return machineClock{}
	}
	return s.Clock
}
