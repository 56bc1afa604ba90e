package node

import "time"

// Cause is why a node refuses, as a fixed word without figures.
type Cause string

// The causes. docs/operations.md says what to do about each.
const (
	CauseNoWorkerYet          Cause = "no-worker-yet"
	CauseZooKeeperUnreachable Cause = "zookeeper-unreachable"
	// CauseZooKeeperSlow: ZooKeeper answers, but too slowly for the node to register.
	CauseZooKeeperSlow      Cause = "zookeeper-slow"
	CauseRegistrationFrozen Cause = "registration-is-frozen"
	// CauseForgottenOwner: the node waits for the settling time. ZooKeeper may have lost the
	// record of the worker's owner, and that owner can come back until then.
	CauseForgottenOwner Cause = "waiting-for-a-forgotten-owner"
	CauseLeaseHadRunOut Cause = "the-lease-had-run-out"
	CauseFreshWorker    Cause = "took-a-fresh-worker-after-the-clock-went-back"
	CausePredecessor    Cause = "clock-has-to-reach-what-the-predecessor-reserved"
	// CauseNoDurableBound: the clock has reached the reserved bound on the disk.
	CauseNoDurableBound Cause = "no-durable-bound"
	CauseLeaseBorrowed  Cause = "lease-borrowed"
	CauseClockBehind    Cause = "clock-behind"
	CauseClockWrong     Cause = "clock-wrong"
	CauseLeaseOver      Cause = "lease-over"
	CauseLostWorker     Cause = "lost-worker"
	CauseTimeUsedUp     Cause = "time-field-used-up"
	CauseStopping       Cause = "stopping"
)

// OfClock reports whether the node's clock is the cause.
func (c Cause) OfClock() bool { return c == CauseClockBehind || c == CauseClockWrong }

// Causes returns every cause.
func Causes() []Cause {
	return []Cause{
		CauseNoWorkerYet, CauseZooKeeperUnreachable, CauseZooKeeperSlow, CauseRegistrationFrozen, CauseForgottenOwner,
		CauseLeaseHadRunOut, CauseFreshWorker, CausePredecessor, CauseNoDurableBound, CauseLeaseBorrowed, CauseClockBehind, CauseClockWrong,
		CauseLeaseOver, CauseLostWorker, CauseTimeUsedUp, CauseStopping,
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
	// Bound is set for CauseNoDurableBound if the node had begun to serve, otherwise empty.
	Bound Bound
	// Behind is how far the clock is behind the last ID, for CauseClockBehind. The node
	// serves again after this time.
	Behind time.Duration
	// Offset is how far the clock is ahead of that of ZooKeeper's leader, for
	// CauseClockWrong.
	Offset time.Duration
}

func (r *Refusal) Error() string { return "refuses: " + string(r.Cause) }
