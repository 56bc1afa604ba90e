package coordinator

import (
	"fmt"

	"github.com/flaked/flaked/internal/core/store"
)

// wentBack reports whether ZooKeeper has lost our last acknowledged write of the slot. It has if the record has a lower
// version, or the same version from another writer.
func (hold holdState) wentBack(found *Slot, stat store.Stat) bool {
	return found != nil && hold.Heard != Chain{} &&
		(stat.Version < hold.Heard.Version || stat.Version == hold.Heard.Version && !hold.carriedBy(*found))
}

// showsLoss reports whether a record that fences us also shows that ZooKeeper has lost our confirmed one. Another
// cluster in the place of ours cannot be frozen.
func (hold holdState) showsLoss(v view, mine Cluster) bool {
	return v.slot != nil && JudgeCluster(v.cl, mine.UUID, hold.Incarnation) != FoundFenced &&
		(hold.wentBack(v.slot, v.stat) || hold.wasLost(*v.slot))
}

// judge combines the findings on the cluster's record and on ours. Another holder fences us even if the cluster's
// record is lost: our lease may have ended although our clock, which may be behind, says that it runs. Exception: on an
// older copy of our record, a holder that has not confirmed does not fence.
func (hold holdState) judge(v view, mine Cluster) (Finding, string) {
	cluster := JudgeCluster(v.cl, mine.UUID, max(hold.Incarnation, mine.Incarnation))
	finding := judgeSlot(v.slot, hold.Claim)
	older := hold.wentBack(v.slot, v.stat)
	if older && finding == FoundFenced && !v.slot.Confirmed {
		finding = FoundLost
	}
	switch {
	case cluster == FoundFenced:
		return cluster, fmt.Sprintf("this ZooKeeper now holds cluster %s, not %s", v.cl.UUID, mine.UUID)
	case finding == FoundFenced:
		return finding, v.slot.heldAt(hold.Term)
	case cluster == FoundLost:
		return cluster, "ZooKeeper has lost the cluster record"
	case finding == FoundLost && v.slot == nil:
		return finding, "ZooKeeper has lost the worker's record"
	case finding == FoundLost:
		return finding, "ZooKeeper has an older record of the worker: " + v.slot.heldAt(hold.Term)
	case older || v.slot.LeaseUntil < hold.LeaseUntil:
		return FoundLost, "ZooKeeper has an older copy of the worker's record"
	}
	return finding, ""
}

// heldAt says for people who holds the slot.
func (s Slot) heldAt(ours int64) string {
	return fmt.Sprintf("node %s (%s) holds the worker at term %d, ours was %d", s.Node, s.Name, s.Term, ours)
}
