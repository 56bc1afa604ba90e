package node

import (
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
)

func TestMayServe(t *testing.T) {
	const floor, lease = 1000, 2000
	confirming, waiting := Refusal{Phase: Confirming, Cause: CauseConfirming}, Refusal{Phase: Waiting, Cause: CauseBelowFloor}
	for name, tc := range map[string]struct {
		change  func(n *Node)
		now     int64
		may     bool
		refusal Refusal
	}{
		"within the bounds":  {now: floor, may: true},
		"below the floor":    {now: floor - 1, refusal: waiting},
		"at the lease bound": {now: lease, refusal: confirming},
		"never confirmed":    {change: func(n *Node) { n.changeClaim(func(c *coordinator.Claim) { c.EverConfirmed = false }) }, now: floor, refusal: confirming},
		"no tenure":          {change: func(n *Node) { n.tenure = nil }, now: floor},
		"it serves":          {change: func(n *Node) { n.serving.Store(n.tenure) }, now: floor},
		"the node stops":     {change: func(n *Node) { n.refuseLocked(*errStopping) }, now: floor},
		"the clock is wrong": {change: func(n *Node) { findWrong(&n.skew.rounds) }, now: floor},
		"it is closed":       {change: func(n *Node) { n.tenure.closed = true }, now: floor},
	} {
		t.Run(name, func(t *testing.T) {
			n := starting(t)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.tenure = &tenure{floor: floor}
			n.changeClaim(func(c *coordinator.Claim) { c.EverConfirmed, c.LeaseUntil = true, lease })
			if tc.change != nil {
				tc.change(n)
			}
			before := n.refusal.Load()
			if may, refusal := n.mayServe(tc.now); may != tc.may || refusal != tc.refusal || n.refusal.Load() != before {
				t.Errorf("%v, %+v", may, refusal)
			}
		})
	}
}

// findWrong counts so many rounds that the clock counts as wrong.
func findWrong(rounds *timeguard.Rounds) {
	for range timeguard.BadRounds {
		rounds.Add(timeguard.Verdict{Voters: 1, Against: 1})
	}
}
