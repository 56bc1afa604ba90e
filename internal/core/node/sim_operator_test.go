package node

import (
	"context"
	"time"

	"github.com/flaked/flaked/coordinator"
)

// Commands of operators, used as the documents allow.

func (s *sim) hand() coordinator.Operator {
	return coordinator.Operator{Store: s.operator, Now: func() int64 { return s.now / 1e6 }, By: "op"}
}

// operate runs one random command of an operator, whose clock is right.
func (s *sim) operate() {
	hand, ctx := s.hand(), context.Background()
	if s.chance(3) {
		_, _, err := hand.Freeze(ctx, time.Second+s.upTo(s.lease/2))
		s.note("by hand: freeze: %v", err)
		return
	}
	w := s.rng.IntN(s.layout.Workers())
	if found, err := hand.Examine(ctx, w); err == nil {
		_, err = hand.ForceRelease(ctx, found)
		s.note("by hand: release worker %d: %v", w, err)
	}
}

func (s *sim) thaw() (freed int, err error) {
	seen, err := coordinator.ReadCluster(context.Background(), s.operator)
	if err != nil {
		return 0, err
	}
	return coordinator.Thaw(context.Background(), s.operator, seen)
}
