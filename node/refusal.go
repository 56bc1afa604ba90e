package node

import "time"

// Cause is why a node refuses, in a word that stays the same whatever the figures are.
type Cause string

// The causes. docs/operations.md says what to do about each.
const (
	CauseNoWorkerYet          Cause = "no-worker-yet"
	CauseZooKeeperUnreachable Cause = "zookeeper-unreachable"
	// CauseZooKeeperSlow: ZooKeeper answers, too slowly to register in time.
	CauseZooKeeperSlow      Cause = "zookeeper-slow"
	CauseRegistrationFrozen Cause = "registration-is-frozen"
	// CauseForgottenOwner: the node gives an owner that ZooKeeper may have forgotten the
	// settling time to come back.
	CauseForgottenOwner Cause = "waiting-for-a-forgotten-owner"
	CauseLeaseHadRunOut Cause = "the-lease-had-run-out"
	CauseFreshWorker    Cause = "took-a-fresh-worker-after-the-clock-went-back"
	CausePredecessor    Cause = "clock-has-to-reach-what-the-predecessor-reserved"
	// CauseNoDurableBound: the clock has reached the bound on the disk.
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

// Bound is what keeps the bound on the disk from moving on.
type Bound string

const (
	BoundLate       Bound = "late"       // nothing: the process stood still, and extends it now
	BoundStalled    Bound = "stalled"    // the disk does not answer
	BoundUnwritable Bound = "unwritable" // the disk takes no writes
)

// Refusal is why a node makes no ID now: the error of Reserve and Ready. It must not
// be changed once it is made.
type Refusal struct {
	Cause Cause
	// Phase is the node's phase if that brings the refusal; else it is empty.
	Phase Phase
	// Bound is set for CauseNoDurableBound of a node that has served.
	Bound Bound
	// Behind is how far the clock is behind the last ID, for CauseClockBehind. The node
	// serves again after this time.
	Behind time.Duration
	// Offset is how far the clock is ahead of that of ZooKeeper's leader, for
	// CauseClockWrong.
	Offset time.Duration
}

func (r *Refusal) Error() string { return "node: refuses: " + string(r.Cause) }
