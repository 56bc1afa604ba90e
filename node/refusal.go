package node

import "time"

// Cause is why a node refuses, as a fixed word without figures.
type Cause string

// The causes. docs/troubleshooting.md says what to do about each.
const (
	CauseNoWorkerYet          Cause = "no-worker-yet"
	CauseZooKeeperUnreachable Cause = "zookeeper-unreachable"
	// CauseZooKeeperSlow: ZooKeeper answers, but too slowly for the node to register.
	CauseZooKeeperSlow Cause = "zookeeper-slow"
	// CauseConfirming: the node waits for the confirming time. ZooKeeper may have lost the
	// record of the worker's holder, and that holder can come back until then.
	CauseConfirming       Cause = "confirming"
	CauseLeaseExpiredAway Cause = "lease-expired-while-away"
	CauseNewWorker        Cause = "new-worker-after-rollback"
	CauseBelowFloor       Cause = "clock-below-floor"
	// CauseReservedBound: the clock has reached the reserved bound on the disk.
	CauseReservedBound Cause = "reserved-bound-reached"
	CauseLeaseBorrowed Cause = "lease-borrowed"
	CauseClockBehind   Cause = "clock-behind"
	CauseClockWrong    Cause = "clock-wrong"
	CauseLeaseExpired  Cause = "lease-expired"
	CauseLostWorker    Cause = "lost-worker"
	CauseTimeUsedUp    Cause = "time-field-used-up"
	// CauseDraining: the node stops soon. Only Ready returns it: requests still get IDs.
	CauseDraining Cause = "draining"
	CauseStopping Cause = "stopping"
)

// OfClock reports whether the node's clock is the cause.
func (c Cause) OfClock() bool { return c == CauseClockBehind || c == CauseClockWrong }

// Causes returns every cause.
func Causes() []Cause {
	return []Cause{
		CauseNoWorkerYet, CauseZooKeeperUnreachable, CauseZooKeeperSlow, CauseConfirming,
		CauseLeaseExpiredAway, CauseNewWorker, CauseBelowFloor, CauseReservedBound, CauseLeaseBorrowed, CauseClockBehind, CauseClockWrong,
		CauseLeaseExpired, CauseLostWorker, CauseTimeUsedUp, CauseDraining, CauseStopping,
	}
}

// Bound is why the reserved bound on the disk has not moved on.
type Bound string

const (
	BoundLate       Bound = "late"       // the process stood still, and extends it now
	BoundStalled    Bound = "stalled"    // the disk does not answer
	BoundUnwritable Bound = "unwritable" // the disk takes no writes
)

// Refusal is the error of Reserve and Ready: why a node makes no ID now. It must not be
// changed, since several goroutines may have it.
type Refusal struct {
	Cause Cause
	// Phase is the node's phase if the refusal is due to that phase, otherwise empty.
	Phase Phase
	// Bound is set for CauseReservedBound if the node had begun to serve, otherwise empty.
	Bound Bound
	// Behind is how far the clock is behind the last ID, for CauseClockBehind. The node
	// serves again after this time.
	Behind time.Duration
	// Offset is how far the clock is ahead of that of ZooKeeper's leader, for
	// CauseClockWrong.
	Offset time.Duration
}

func (r *Refusal) Error() string { return "refuses: " + string(r.Cause) }
