package clusterview

import (
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/node"
)

// cause is a row of the tables that word each refusal and each trouble of a node once: for status, the
// page and doctor. In text, %s stands for details that only the node itself knows.
type cause struct {
	severity     Severity
	text, advice string
}

const seeRefusals = "See docs/troubleshooting.md."

const (
	setClock   = "Check with chronyc tracking, then set the clock right. The node then serves again by itself. Do not restart it."
	checkClock = "Check its time synchronisation (chronyc tracking)."
	thawAdvice = "Start the missing nodes again, or see flaked cluster thaw --help."
	justWait   = "Wait. The node then serves by itself."
	restoreZK  = "Restore ZooKeeper, or the network to it"
)

// refusals says why a node refuses. A text is a sentence.
var refusals = map[node.Cause]cause{
	node.CauseNoWorkerYet:          {Critical, "Starting: no worker acquired yet", "Wait. If this lasts, the node's log says why."},
	node.CauseZooKeeperUnreachable: {Critical, "ZooKeeper does not answer%s, and the node cannot start without it", "Start ZooKeeper, or correct --zk or the network to ZooKeeper. The node then starts by itself."},
	node.CauseZooKeeperSlow:        {Critical, "ZooKeeper answers too slowly for the node to acquire a worker", "Wait: the node keeps trying. If this lasts, find out what slows ZooKeeper down."},
	node.CauseConfirming:           {Critical, "Confirming that no other node uses the node's worker%s", justWait},
	node.CauseLeaseExpiredAway:     {Critical, "Confirming that no other node uses the node's worker%s", justWait},
	node.CauseNewWorker:            {Critical, "The machine's clock went back, so the node acquired another worker. It confirms it%s", "Wait. Then find out why the clock went back."},
	node.CauseBelowFloor:           {Critical, "Waiting until the clock passes the previous process's reserved bound", "Wait 3 s. If this lasts, the machine's clock went back. Set the clock right."},
	node.CauseReservedBound:        {Critical, "The node cannot write its state directory%s", "Free space on the disk of --state-dir, or repair the disk. The node then serves again by itself."},
	node.CauseLeaseBorrowed:        {Critical, "A burst borrowed all time up to the end of the lease", "Wait. If this happens often, check whether heartbeats renew the lease."},
	node.CauseClockBehind:          {Critical, "The machine's clock went back. It is behind the last ID%s", setClock},
	node.CauseClockWrong:           {Critical, "The machine's clock is wrong%s", setClock + " If it is right, the other clocks are wrong: flaked doctor says whose."},
	node.CauseLeaseExpired:         {Critical, "The lease has expired: ZooKeeper did not answer for too long%s", restoreZK + ". The node then serves again by itself. Do not restart it."},
	node.CauseLostWorker:           {Critical, "The node lost its worker and is acquiring another one. The log says why", justWait},
	node.CauseTimeUsedUp:           {Critical, "The layout's time field is used up, or the machine's clock is far ahead", "Check the clock. If it is right, make a new cluster with another layout."},
	node.CauseDraining:             {Critical, "The node drains: it still answers open connections, and stops soon", "An operator stops it. No action needed: clients use other nodes."},
	node.CauseStopping:             {Critical, "The node is stopping", "No action needed: clients use other nodes."},
}

// troubles says what is wrong with a node that may serve. A text goes on after the name of the node.
var troubles = map[string]cause{
	node.TroubleDisk:      {Critical, "cannot write to the state directory%s", "Check its disk. The reserved bound is only seconds ahead. Free space or repair it at once."},
	node.TroubleZooKeeper: {Critical, "has had no answer from ZooKeeper%s", "Restore its connection to ZooKeeper before its lease expires."},
	node.TroubleOffset:    {Warning, "has a clock more than 500 ms off another's%s", checkClock},
	node.TroubleLeap:      {Warning, "runs on a machine whose clock leapt%s ahead, unconfirmed by ZooKeeper and peers. IDs do not follow the leap", checkClock},
	node.TroubleCoasting:  {Warning, "coasts, because the machine's clock went back%s: IDs continue from the monotonic clock", checkClock},
	node.TroubleFromCache: {Warning, "runs only from its state directory: ZooKeeper has no record of this start yet", "Restore its connection to ZooKeeper."},
	node.TroubleFrozen:    {Warning, "reports that registration is frozen", thawAdvice},
}

// refusalOf returns the row of a refusal. said is the reply to a client, "" if it is not known.
func refusalOf(of node.Cause, said string) cause {
	if c, ok := refusals[of]; ok {
		return c
	}
	return cause{Critical, said, seeRefusals}
}

// problem returns the problem of a row, with these details.
func (c cause) problem(subject, details string) Problem {
	return Problem{c.severity, subject + strings.Replace(c.text, "%s", details, 1), c.advice}
}

// refusalDetails returns what only the node itself knows about its refusal.
func refusalDetails(s node.Snapshot) string {
	switch s.Cause {
	case node.CauseZooKeeperUnreachable, node.CauseLeaseExpired:
		return because(s.ZooKeeper.Error)
	case node.CauseConfirming, node.CauseLeaseExpiredAway, node.CauseNewWorker:
		if s.Cluster.ConfirmMs > 0 {
			return ", for up to " + Brief(s.Cluster.ConfirmMs)
		}
	case node.CauseReservedBound:
		return because(s.Disk.Error)
	case node.CauseClockBehind:
		return " by " + about(s.Clock.BehindMs)
	case node.CauseClockWrong:
		return fmt.Sprintf("%s, compared with %d of %d other clocks", amount(s.Clock.WorstMs), s.Clock.Against, s.Clock.Voters)
	}
	return ""
}

// troubleDetails is refusalDetails for a trouble.
func troubleDetails(word string, s node.Snapshot) string {
	switch word {
	case node.TroubleDisk:
		return because(s.Disk.Error)
	case node.TroubleZooKeeper:
		since := ""
		if age := s.ZooKeeper.HeartbeatAgeMs; age != nil {
			since = " since " + timeOfDay(s.NowMs-*age)
		}
		return since + because(s.ZooKeeper.Error)
	case node.TroubleOffset:
		return fmt.Sprintf("%s, compared with the worst of %d other clocks", amount(s.Clock.WorstMs), s.Clock.Voters)
	case node.TroubleLeap:
		return " " + about(s.Clock.UnfollowedLeapMs)
	case node.TroubleCoasting:
		return " by " + about(s.Clock.CoastingMs)
	}
	return ""
}

func timeOfDay(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.TimeOnly) + " UTC" }

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
