package node

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// Cause is the reason why a node refuses, as a fixed word without figures.
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
	// CauseSequences: the node takes no values of named sequences yet. Only Ready returns it: requests get IDs.
	CauseSequences Cause = "sequences-confirming"
	// CauseDraining: the node stops soon. Only Ready returns it: requests still get IDs.
	CauseDraining Cause = "draining"
	CauseStopping Cause = "stopping"
)

// OfClock reports whether the node's clock is the cause.
func (c Cause) OfClock() bool { return c == CauseClockBehind || c == CauseClockWrong }

// Reply returns the error that clients get for the cause, with zeros for figures and without the node's phase.
func (c Cause) Reply() *ids.ReplyError { return newRefusal(Refusal{Cause: c}).reply }

// Causes returns every cause.
func Causes() []Cause {
	return []Cause{
		CauseNoWorkerYet, CauseZooKeeperUnreachable, CauseZooKeeperSlow, CauseConfirming,
		CauseLeaseExpiredAway, CauseNewWorker, CauseBelowFloor, CauseReservedBound, CauseLeaseBorrowed,
		CauseClockBehind, CauseClockWrong,
		CauseLeaseExpired, CauseLostWorker, CauseTimeUsedUp, CauseSequences, CauseDraining,
		CauseStopping,
	}
}

// StuckBy is the reason why the reserved bound on the disk has not moved on.
type StuckBy string

const (
	StuckByPause StuckBy = "late"       // the process stood still, and extends it now
	StuckByStall StuckBy = "stalled"    // the disk does not answer
	StuckByError StuckBy = "unwritable" // the disk takes no writes
)

// Refusal is the error of Reserve and Ready: why a node makes no ID now. It wraps the
// *ids.ReplyError that a client gets. It must not be changed, since several goroutines may have it.
type Refusal struct {
	Cause Cause
	// Phase is the node's phase if the refusal is due to that phase, otherwise empty.
	Phase Phase
	// StuckBy is set for CauseReservedBound if the node had begun to serve, otherwise empty.
	StuckBy StuckBy
	// Behind is how far the clock is behind the last ID, for CauseClockBehind. The node serves again after this time.
	Behind time.Duration
	// Offset is how far the clock is ahead of that of ZooKeeper's leader, for CauseClockWrong.
	Offset time.Duration
	// Era is the times that IDs of the layout can have, in words, for CauseTimeUsedUp.
	Era string

	reply *ids.ReplyError
}

// newRefusal returns r with its words. They are made once, because a lasting refusal answers many requests.
func newRefusal(r Refusal) *Refusal {
	r.reply = r.words()
	return &r
}

func (r *Refusal) Error() string { return r.reply.Error() }
func (r *Refusal) Unwrap() error { return r.reply }

// words returns the reply that clients get.
func (r *Refusal) words() *ids.ReplyError {
	switch r.Cause {
	case CauseClockBehind:
		ms := int64((r.Behind + time.Millisecond - 1) / time.Millisecond) // rounded up
		return replies.New(ids.CLOCK, fmt.Sprintf(
			"the clock is behind the last ID behind_ms=%d retry_after_ms=%d", ms, ms))
	case CauseClockWrong:
		return replies.New(ids.CLOCK, fmt.Sprintf(
			"most voters say that this node's clock is wrong offset_ms=%d", r.Offset.Milliseconds()))
	case CauseLeaseExpired:
		return replies.New(ids.FENCED, "the lease has expired: ZooKeeper could not be reached to renew it")
	case CauseLostWorker:
		return replies.New(ids.FENCED, "this node lost its worker and is registering as a new one")
	case CauseTimeUsedUp:
		text := "the layout's time field is used up"
		if r.Era != "" {
			text += ": IDs have times " + r.Era
		}
		return replies.New(ids.EXHAUSTED, text)
	case CauseSequences:
		return replies.New(ids.NOTREADY, "starting: another node takes values of named sequences, and this one does "+
			"soon reason="+string(r.Cause))
	case CauseDraining:
		return replies.New(ids.NOTREADY, "draining: the node stops soon")
	case CauseStopping:
		return replies.New(ids.NOTREADY, "stopping")
	}
	return replies.New(ids.NOTREADY, r.phrase()+" reason="+string(r.Cause))
}

// phrase returns the text of a NOTREADY reply before " reason=".
func (r *Refusal) phrase() string {
	switch {
	case r.Cause == CauseLeaseBorrowed:
		return "a burst has borrowed up to the end of the lease"
	case r.StuckBy == StuckByPause:
		return "reserved bound reached: the process stood still, and is writing a new reserved bound"
	case r.StuckBy == StuckByStall:
		return "reserved bound reached: the state directory does not answer"
	case r.StuckBy == StuckByError:
		return "reserved bound reached: the state directory cannot be written"
	}
	return string(r.Phase)
}
