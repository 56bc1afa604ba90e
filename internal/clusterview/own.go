package clusterview

import (
	"slices"

	"github.com/flaked/flaked/node"
)

// OwnWorker is a worker of this process, of which more is known than a record in ZooKeeper says.
type OwnWorker struct{ node.Snapshot }

// HeartbeatLate reports whether the worker's last heartbeat was acknowledged too long ago.
func (w OwnWorker) HeartbeatLate() bool {
	age := w.ZooKeeper.HeartbeatAgeMs
	return age != nil && HeartbeatLate(*age, w.ZooKeeper.HeartbeatMs)
}

// overdue is the delay after which a heartbeat counts as late, in milliseconds.
const overdue = 500

// HeartbeatLate reports whether a heartbeat of this age is overdue. every is the time between two
// heartbeats. Both are in milliseconds. ReportPatience is longer: until then it may come.
func HeartbeatLate(age, every int64) bool { return every > 0 && age > every+overdue }

// CutOff reports whether ZooKeeper does not extend the worker's lease.
func (w OwnWorker) CutOff() bool {
	return w.HeartbeatLate() || w.FromCache || slices.Contains(w.Degraded, node.TroubleZooKeeper)
}

// ClockOff reports whether something is wrong with the clock of this machine. It leaves out
// Clock.WorstMs, because that may be the fault of one other node's clock.
func (w OwnWorker) ClockOff() bool {
	c := w.Clock
	return c.Wrong || c.BehindMs > 0 || c.UnfollowedLeapMs > 0 || c.OffsetMs != nil && BeyondWarning(*c.OffsetMs, *c.UncertaintyMs)
}

// Problems returns the problems of the worker, the refusal first.
func (w OwnWorker) Problems() (out []Problem) {
	if !w.Ready {
		out = append(out, refusalOf(w.Cause, "The node refuses: -"+w.Code+" "+w.Reason).problem("", refusalDetails(w.Snapshot)))
	}
	if w.CutOff() && w.Cause != node.CauseZooKeeperUnreachable && w.Cause != node.CauseLeaseExpired {
		out = append(out, w.withoutZooKeeper())
	}
	for _, word := range w.Degraded {
		row, known := troubles[word]
		switch {
		case !known:
			out = append(out, Problem{Warning, word, "See degraded in docs/http.md."})
		// Another problem covers these: ClusterReport.FrozenProblem, withoutZooKeeper, and the refusal.
		case word == node.TroubleFrozen, word == node.TroubleZooKeeper, word == node.TroubleFromCache:
		case word == node.TroubleDisk && !w.Ready, word == node.TroubleOffset && (w.Clock.WorstMs == nil || w.Cause.OfClock()):
		default:
			out = append(out, row.problem(thisNode, troubleDetails(word, w.Snapshot)))
		}
	}
	return out
}

const thisNode = "This node "

func (w OwnWorker) withoutZooKeeper() Problem {
	if w.FromCache && !w.HeartbeatLate() && w.ZooKeeper.Error == "" {
		return troubles[node.TroubleFromCache].problem(thisNode, "")
	}
	p := troubles[node.TroubleZooKeeper].problem(thisNode, troubleDetails(node.TroubleZooKeeper, w.Snapshot))
	if p.Advice = restoreZK + "."; w.Ready && w.LeaseEndsMs != nil {
		p.Advice = restoreZK + ", before " + timeOfDay(*w.LeaseEndsMs) + ". A restart does not help."
	}
	return p
}

// Starting reports whether a cause is normal after a start and passes by itself.
func Starting(cause node.Cause) bool {
	switch cause {
	case node.CauseNoWorkerYet, node.CauseConfirming, node.CauseLeaseExpiredAway, node.CauseBelowFloor, node.CauseNewWorker:
		return true
	}
	return false
}
