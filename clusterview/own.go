package clusterview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/node"
)

// OwnWorker is a worker of this process, of which more is known than a record in ZooKeeper says.
type OwnWorker struct{ node.Snapshot }

// HeartbeatLate reports whether the worker's last heartbeat was acknowledged too long ago.
func (w OwnWorker) HeartbeatLate() bool {
	age := w.ZooKeeper.HeartbeatAgeMs
	return age != nil && HeartbeatLate(*age, w.ZooKeeper.HeartbeatMs)
}

// overdue is how late a heartbeat may be, in milliseconds.
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
		out = append(out, w.refusal())
	}
	if w.CutOff() && w.Cause != node.CauseZooKeeperUnreachable && w.Cause != node.CauseLeaseExpired {
		out = append(out, w.withoutZooKeeper())
	}
	for _, trouble := range w.Degraded {
		if p := w.troubled(trouble); p.Text != "" {
			out = append(out, p)
		}
	}
	return out
}

// Starting reports whether a cause is normal after a start and passes by itself.
func Starting(cause node.Cause) bool {
	switch cause {
	case node.CauseNoWorkerYet, node.CauseConfirming, node.CauseLeaseExpiredAway, node.CauseBelowFloor, node.CauseNewWorker:
		return true
	}
	return false
}

// refusal returns why the worker refuses. docs/troubleshooting.md says what to do about each cause.
func (w OwnWorker) refusal() Problem {
	advice := cmp.Or(refusalAdvice[w.Cause], seeRefusals)
	p := Problem{Critical, "The node refuses: -" + w.Code + " " + w.Reason, advice}
	switch w.Cause {
	case node.CauseNoWorkerYet:
		p.Text = "Starting: no worker acquired yet"
	case node.CauseZooKeeperUnreachable:
		p.Text = "ZooKeeper does not answer" + because(w.ZooKeeper.Error) + ", and this node cannot start without it"
	case node.CauseZooKeeperSlow:
		p.Text = "ZooKeeper answers too slowly for this node to acquire a worker"
	case node.CauseConfirming, node.CauseLeaseExpiredAway:
		p.Text = "Confirming that no other node uses this node's worker" + upTo(w.Cluster.ConfirmMs)
	case node.CauseNewWorker:
		p.Text = "This machine's clock went back, so the node acquired another worker. It confirms it" + upTo(w.Cluster.ConfirmMs)
	case node.CauseBelowFloor:
		p.Text = "Waiting until the clock passes the previous process's reserved bound"
	case node.CauseReservedBound:
		p.Text = "The node cannot write its state directory" + because(w.Disk.Error)
	case node.CauseLeaseBorrowed:
		p.Text = "A burst borrowed all time up to the end of the lease"
	case node.CauseClockBehind:
		p.Text = "This machine's clock went back. It is behind the last ID by " + about(w.Clock.BehindMs)
	case node.CauseClockWrong:
		p.Text = fmt.Sprintf("This machine's clock is wrong%s, compared with %d of %d other clocks", amount(w.Clock.WorstMs), w.Clock.Against, w.Clock.Voters)
	case node.CauseLeaseExpired:
		p.Text = "The lease has expired: ZooKeeper did not answer for too long" + because(w.ZooKeeper.Error)
	case node.CauseLostWorker:
		p.Text = "This node lost its worker and is acquiring another one. The log says why"
	case node.CauseTimeUsedUp:
		p.Text = "The layout's time field is used up, or this machine's clock is far ahead"
	case node.CauseDraining:
		p.Text = "The node drains: it still answers open connections, and stops soon"
	case node.CauseStopping:
		p.Text = "The node is stopping"
	}
	return p
}

const (
	newNodesFrozen = "ZooKeeper has lost data or an operator froze registration, so new nodes get no worker"
	restoreZK      = "Restore ZooKeeper, or the network to it"
)

func (w OwnWorker) withoutZooKeeper() Problem {
	if w.FromCache && !w.HeartbeatLate() && w.ZooKeeper.Error == "" {
		return Problem{Warning, "The node started from its state directory. ZooKeeper has no record of this start yet", "Check whether ZooKeeper answers. If it does, this passes within seconds."}
	}
	clock := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.TimeOnly) + " UTC" }
	since := ""
	if age := w.ZooKeeper.HeartbeatAgeMs; age != nil {
		since = " since " + clock(w.NowMs-*age)
	}
	p := Problem{Critical, "ZooKeeper has not answered this node" + since + because(w.ZooKeeper.Error), restoreZK + "."}
	if w.Ready && w.LeaseEndsMs != nil {
		p.Advice = restoreZK + ", before " + clock(*w.LeaseEndsMs) + ". A restart does not help."
	}
	return p
}

// troubled returns the problem that a word of Snapshot.Degraded stands for. It returns an
// empty one if another problem already covers it.
func (w OwnWorker) troubled(word string) Problem {
	switch word {
	case node.TroubleDisk:
		if w.Ready {
			return Problem{Critical, "The node cannot write its state directory" + because(w.Disk.Error), "Free space on the disk of --state-dir or repair the disk, at once."}
		}
	case node.TroubleOffset:
		if w.Clock.WorstMs != nil && !w.Cause.OfClock() {
			return Problem{Warning, fmt.Sprintf("This machine's clock is%s, compared with the worst of %d other clocks", strings.TrimPrefix(amount(w.Clock.WorstMs), ":"), w.Clock.Voters), checkClock}
		}
	case node.TroubleLeap:
		return Problem{Warning, "This machine's clock leapt " + about(w.Clock.UnfollowedLeapMs) + " ahead. No other clock confirms the leap, and IDs do not follow it", checkClock}
	case node.TroubleCoasting:
		return Problem{Warning, "This machine's clock went back by " + about(w.Clock.CoastingMs) + ". The node coasts: IDs continue from the monotonic clock", checkClock}
	// ClusterReport.FrozenProblem covers the first, withoutZooKeeper the others.
	case node.TroubleFrozen, node.TroubleZooKeeper, node.TroubleFromCache:
	default:
		return Problem{Warning, word, "See degraded in docs/http.md."}
	}
	return Problem{}
}

// because returns an error in a few words, like " (connection refused)", for readers who do
// not know Go. It returns "" for an error that it does not know. The page shows the whole
// error further below, and the log has it.
func because(err string) string {
	for _, known := range []struct{ part, words string }{
		{"connection refused", "connection refused"}, {"no route to host", "no route to host"}, {"network is unreachable", "network unreachable"},
		{"no such host", "host name not found"}, {"no space left", "no space left"}, {"read-only", "read-only"}, {"permission denied", "permission denied"},
		{"under way", "slow write"}, {"input/output", "input/output error"},
	} {
		if strings.Contains(err, known.part) {
			return " (" + known.words + ")"
		}
	}
	return ""
}

// amount formats a clock offset in ms, like ": 59m59s slow". It returns "" for nil.
func amount(ms *float64) string {
	if ms == nil {
		return ""
	}
	way := " fast"
	if *ms < 0 {
		way = " slow"
	}
	return ": " + Size(*ms) + way
}

// about formats a duration in ms, rounded to seconds, so that the text changes seldom.
func about(ms int64) string {
	if ms >= 1000 {
		ms = (ms + 500) / 1000 * 1000
	}
	return Brief(ms)
}

// upTo formats a longest wait in ms, as ", for up to 12s". It returns "" for 0, which means that it
// is not known yet.
func upTo(ms int64) string {
	if ms == 0 {
		return ""
	}
	return ", for up to " + Brief(ms)
}
