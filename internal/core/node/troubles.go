package node

import (
	"errors"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// The troubles that Snapshot.Degraded may list. A node may serve in spite of them.
const (
	// TroubleZooKeeper: the last heartbeat failed, and not because of the disk. The node serves within its lease.
	TroubleZooKeeper = "zookeeper"
	// TroubleQuota: the last heartbeat failed, because ZooKeeper refused a write.
	TroubleQuota = "zookeeper-quota"
	// TroubleLocalSession: the last heartbeat was acknowledged, but ZooKeeper refused the live lock, because its
	// servers use local sessions.
	TroubleLocalSession = "zookeeper-local-session"
	// TroubleDamaged: the last heartbeat failed, because the cluster's record is damaged.
	TroubleDamaged = "cluster-damaged"
	// TroubleFromCache: the node started from its state directory alone, so its clock has not
	// been compared with others yet.
	TroubleFromCache = "from-cache"
	// TroubleDisk: the state directory takes no writes, a write stalls, or the next process would not find it.
	TroubleDisk = "state-directory"
	// TroubleOffset: the clock differs from a voter's by more than 500 ms.
	TroubleOffset = "clock-offset"
	// TroubleLeap: the machine's clock has leapt ahead, and the leap is not confirmed.
	TroubleLeap = "clock-leap"
	// TroubleCoasting: the machine's clock went back, and the clock that IDs are made by coasts ahead of it.
	TroubleCoasting = "clock-coasting"
	// TroubleFrozen: registration is frozen, so new nodes get no worker. ZooKeeper has lost
	// data, or an operator froze registration.
	TroubleFrozen = "frozen"
)

// Troubles returns the words that Snapshot.Degraded may hold, in its order.
func Troubles() []string {
	return []string{TroubleZooKeeper, TroubleQuota, TroubleLocalSession, TroubleDamaged, TroubleFromCache, TroubleDisk,
		TroubleOffset, TroubleLeap, TroubleCoasting, TroubleFrozen}
}

// ZooKeeperTrouble returns the trouble of the last heartbeat, or of the live lock after it, "" if there is none.
func ZooKeeperTrouble(troubles []string) string {
	for _, t := range troubles {
		switch t {
		case TroubleZooKeeper, TroubleQuota, TroubleLocalSession, TroubleDamaged:
			return t
		}
	}
	return ""
}

// troubleOf returns the trouble of a round that ended with err, "" if it succeeded.
func troubleOf(err error) string {
	_, ofDisk := errors.AsType[*diskError](err)
	switch {
	case err == nil:
		return ""
	case ofDisk:
		return TroubleDisk
	case errors.Is(err, store.ErrQuota):
		return TroubleQuota
	case errors.Is(err, store.ErrLocalSession):
		return TroubleLocalSession
	case errors.Is(err, coordinator.ErrDamaged):
		return TroubleDamaged
	}
	return TroubleZooKeeper
}

func (s Snapshot) degraded() []string {
	worst := timeguard.Offset{}
	if s.Clock.WorstMs != nil {
		worst = timeguard.Offset{Ahead: fromMs(*s.Clock.WorstMs), Uncertainty: fromMs(*s.Clock.WorstUncertaintyMs)}
	}
	has := map[string]bool{
		TroubleFromCache: s.FromCache,
		TroubleDisk:      !s.Disk.OK,
		TroubleOffset:    worst.Beyond(limits.WarnSkew),
		TroubleLeap:      s.Clock.UnfollowedLeapMs > 0,
		TroubleCoasting:  s.Clock.CoastingMs > 0,
		TroubleFrozen:    s.FrozenUntilMs != nil,
	}
	has[s.ZooKeeper.trouble] = true
	found := []string{} // not null in JSON
	for _, t := range Troubles() {
		if has[t] {
			found = append(found, t)
		}
	}
	return found
}

func fromMs(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
