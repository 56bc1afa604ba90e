package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/words"
	"github.com/flaked/flaked/localcache"
)

// OwnWorker is a worker of this process, of which more is known than a record in ZooKeeper says.
type OwnWorker struct{ node.Snapshot }

// HeartbeatLate reports whether the worker's last heartbeat was acknowledged too long ago.
func (w OwnWorker) HeartbeatLate() bool {
	age := w.ZooKeeper.HeartbeatAgeMs
	return age != nil && HeartbeatOverdue(*age, w.ZooKeeper.HeartbeatMs)
}

// overdue is the delay after which a heartbeat counts as late, in milliseconds.
const overdue = 500

// HeartbeatOverdue reports whether a heartbeat of this age is overdue. every is the time between two heartbeats. Both
// are in milliseconds. For the reports of other nodes, ReportPatience allows more.
func HeartbeatOverdue(age, every int64) bool { return every > 0 && age > every+overdue }

// CutOff reports whether the worker's last heartbeat failed or is late, ZooKeeper refused its live lock, or ZooKeeper
// has no record of this start yet.
func (w OwnWorker) CutOff() bool {
	return w.HeartbeatLate() || w.FromCache || node.ZooKeeperTrouble(w.Degraded) != ""
}

// ClockTrouble reports whether something is wrong with the clock of this machine. It leaves out Clock.WorstMs, because
// that may be the fault of one other node's clock.
func (w OwnWorker) ClockTrouble() bool {
	c := w.Clock
	return c.Wrong || c.BehindMs > 0 || c.UnfollowedLeapMs > 0 ||
		c.OffsetMs != nil && beyondWarning(*c.OffsetMs, *c.UncertaintyMs)
}

// Problems returns the problems of the worker with their details, the refusal first. Report.answerProblems and
// Report.recordProblems are for workers of other nodes.
func (w OwnWorker) Problems() (out []Problem) {
	add := func(r row) { out = append(out, r.problem(w.details(r.cause))) }
	if !w.Ready {
		add(rowOf(string(w.Cause)))
	}
	switch {
	case !w.CutOff(), w.Cause == node.CauseZooKeeperUnreachable, w.Cause == node.CauseLeaseExpired:
	case w.FromCache && !w.HeartbeatLate() && w.ZooKeeper.Error == "":
		add(rowFromCache)
	case zooKeeperRefusesWrites(w.Degraded): // which is a problem of its own
	default:
		add(rowNoZooKeeper)
	}
	for _, r := range uncovered(w.Degraded, w.Cause, map[string]bool{
		node.TroubleFromCache: true, // the switch above covers it
		node.TroubleFrozen:    true, // ClusterReport.FrozenProblem covers it
		// The refusal covers it. Without WorstMs, no other clock is known.
		node.TroubleOffset: w.Cause.OfClock() || w.Clock.WorstMs == nil,
	}) {
		add(r)
	}
	return out
}

// uncovered returns the rows of a node's troubles that no other problem of the node covers. cause is the node's
// refusal, "" for none. covered has the troubles that the caller covers: OwnWorker.Problems covers others than
// Report.answerProblems, because a report has ZooKeeper's records, too.
func uncovered(troubles []string, cause node.Cause, covered map[string]bool) (rows []row) {
	for _, word := range node.Troubles() {
		switch {
		case !slices.Contains(troubles, word), covered[word]:
		case word == node.TroubleZooKeeper: // both callers add rowNoZooKeeper
		case word == node.TroubleDisk && cause == node.CauseReservedBound: // the refusal covers it
		default:
			rows = append(rows, rowOf(word))
		}
	}
	return rows
}

// zooKeeperRefusesWrites reports whether ZooKeeper answers, and one of these is in the way: a quota, local sessions, or
// a damaged record of the cluster.
func zooKeeperRefusesWrites(troubles []string) bool {
	word := node.ZooKeeperTrouble(troubles)
	return word != "" && word != node.TroubleZooKeeper
}

// details returns what only the node itself knows of a problem.
func (w OwnWorker) details(cause string) string {
	c := w.Clock
	switch cause {
	case string(node.CauseZooKeeperUnreachable), string(node.CauseLeaseExpired):
		return shortReason(w.ZooKeeper.Error)
	case string(node.CauseReservedBound), node.TroubleDisk:
		return shortReason(w.Disk.Error)
	case string(node.CauseClockBehind):
		return " by " + rounded(c.BehindMs)
	case string(node.CauseClockWrong):
		return fmt.Sprintf("%s, compared with %d of %d other clocks", fastOrSlow(c.WorstMs), c.Against, c.Voters)
	case node.TroubleZooKeeper:
		since := ""
		if age := w.ZooKeeper.HeartbeatAgeMs; age != nil {
			since = " since " + time.UnixMilli(w.NowMs-*age).UTC().Format(time.TimeOnly) + " UTC"
		}
		return since + shortReason(w.ZooKeeper.Error)
	case node.TroubleOffset:
		return fmt.Sprintf("%s, compared with the worst of %d other clocks", fastOrSlow(c.WorstMs), c.Voters)
	case node.TroubleLeap:
		return " " + rounded(c.UnfollowedLeapMs)
	case node.TroubleCoasting:
		return " by " + rounded(c.CoastingMs)
	}
	return ""
}

// fastOrSlow formats a clock offset in ms, like ": 59m59s slow". It returns "" for nil.
func fastOrSlow(ms *float64) string {
	if ms == nil {
		return ""
	}
	way := " fast"
	if *ms < 0 {
		way = " slow"
	}
	return ": " + words.OffsetWithoutSign(*ms) + way
}

// rounded formats a duration in ms, from 1 s on rounded to seconds, so that the text changes seldom.
func rounded(ms int64) string {
	if ms >= 1000 {
		ms = (ms + 500) / 1000 * 1000
	}
	return words.Duration(ms)
}

// shortReason returns an error in a few words, like " (connection refused)", for readers who do not know Go. It returns
// "" for an error that it does not know. The page shows the whole error further below, and the log has it.
func shortReason(err string) string {
	for _, known := range []string{
		"connection refused", "no route to host", "network is unreachable", "no such host", "no space left",
		"read-only",
		"permission denied", "operation not permitted", "denied access",
		node.StallText, "input/output error", localcache.ErrGone.Error(),
	} {
		if strings.Contains(err, known) {
			return " (" + known + ")"
		}
	}
	return ""
}
