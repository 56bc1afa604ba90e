package node

import "time"

// Cause is why a node refuses, in a word that stays the same whatever the figures are.
type Cause string

// The causes. docs/operations.md says what to do about each.
const (
	CauseNoWorkerYet          Cause = "no-worker-yet"
	CauseZooKeeperUnreachable Cause = "zookeeper-unreachable"
	CauseRegistrationFrozen   Cause = "registration-is-frozen"
	// CauseForgottenOwner: ZooKeeper may have forgotten an owner of the worker, who is
	// given the settling time to come back.
	CauseForgottenOwner Cause = "waiting-for-a-forgotten-owner"
	CauseLeaseHadRunOut Cause = "the-lease-had-run-out"
	CauseFreshWorker    Cause = "took-a-fresh-worker-after-the-clock-went-back"
	CausePredecessor    Cause = "clock-has-to-reach-what-the-predecessor-reserved"
	// CauseNoDurableBound: the bound on the disk has been reached. Refusal.Bound says why.
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

// Causes are all of them.
func Causes() []Cause {
	return []Cause{
		CauseNoWorkerYet, CauseZooKeeperUnreachable, CauseRegistrationFrozen, CauseForgottenOwner, CauseLeaseHadRunOut,
		CauseFreshWorker, CausePredecessor, CauseNoDurableBound, CauseLeaseBorrowed, CauseClockBehind, CauseClockWrong,
		CauseLeaseOver, CauseLostWorker, CauseTimeUsedUp, CauseStopping,
	}
}

// Bound says what keeps the bound on the disk from moving on.
type Bound string

const (
	BoundLate       Bound = "late"       // nothing: the process stood still, and extends it now
	BoundStalled    Bound = "stalled"    // the disk does not answer
	BoundUnwritable Bound = "unwritable" // the disk takes no writes
)

// Refusal is why a node makes no ID now. It is the error of Reserve and Ready. It
// must not be changed once it is made.
type Refusal struct {
	Cause Cause
	// Phase is the node's, of those refusals that a phase brings; else empty.
	Phase Phase
	// Bound is set for CauseNoDurableBound where the node had served.
	Bound Bound
	// Behind is, for CauseClockBehind, how far the clock is behind the last ID, so also
	// how long it takes until the node serves again.
	Behind time.Duration
	// Offset is, for CauseClockWrong, how far the clock is ahead of ZooKeeper's leader's.
	Offset time.Duration
}

func (r *Refusal) Error() string {
	text := "node: refuses: " + string(r.Cause)
	if r.Bound != "" {
		text += " (" + string(r.Bound) + ")"
	}
	return text
}
