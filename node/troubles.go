package node

import (
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
)

// The troubles of a node that may well serve.
const (
	// TroubleZooKeeper: the last heartbeat failed. The lease lasts for a while.
	TroubleZooKeeper = "zookeeper"
	// TroubleFromCache: it started from the state directory alone, so nobody
	// has confirmed its clock.
	TroubleFromCache = "from-cache"
	// TroubleDisk: the state directory takes no writes.
	TroubleDisk = "state-directory"
	// TroubleOffset: the clock is more than 500 ms off that of a voter.
	TroubleOffset = "clock-offset"
	// TroubleLeap: the machine's clock has leapt ahead, and nobody confirms it.
	TroubleLeap = "clock-leap"
	// TroubleCoasting: the machine's clock went back, and IDs go on without it.
	TroubleCoasting = "clock-coasting"
	// TroubleFrozen: ZooKeeper has lost data, and new nodes get no worker.
	TroubleFrozen = "frozen"
)

// Troubles are the words that Snapshot.Degraded may hold, in its order.
func Troubles() []string {
	return []string{TroubleZooKeeper, TroubleFromCache, TroubleDisk, TroubleOffset, TroubleLeap, TroubleCoasting, TroubleFrozen}
}

func (s Snapshot) degraded() []string {
	worst := timeguard.Offset{}
	if s.Clock.WorstMs != nil {
		worst = timeguard.Offset{Ahead: fromMs(*s.Clock.WorstMs), Error: fromMs(*s.Clock.WorstErrorMs)}
	}
	has := map[string]bool{
		TroubleZooKeeper: s.ZooKeeper.Error != "",
		TroubleFromCache: s.FromCache,
		TroubleDisk:      !s.Disk.OK,
		TroubleOffset:    worst.Beyond(limits.WarnSkew),
		TroubleLeap:      s.Clock.UnfollowedLeapMs > 0,
		TroubleCoasting:  s.Clock.CoastingMs > 0,
		TroubleFrozen:    s.FrozenUntilMs != nil,
	}
	found := []string{} // a list in JSON, too
	for _, t := range Troubles() {
		if has[t] {
			found = append(found, t)
		}
	}
	return found
}

func fromMs(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
