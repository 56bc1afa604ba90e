package admin

import (
	"fmt"
	"strings"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/node"
)

// wrongWith returns the problems of one worker of this process, the refusal first.
func wrongWith(w ownView) (out []wrongView) {
	if !w.Ready {
		out = append(out, refusalOf(w.Snapshot))
	}
	if w.cutOff() && w.Cause != node.CauseZooKeeperUnreachable && w.Cause != node.CauseLeaseExpired {
		out = append(out, withoutZooKeeper(w))
	}
	for _, trouble := range w.Degraded {
		if wrong := troubleOf(trouble, w.Snapshot); wrong.What != "" {
			out = append(out, wrong)
		}
	}
	return out
}

// starting reports whether a cause is normal after a start and passes by itself.
func starting(cause node.Cause) bool {
	switch cause {
	case node.CauseNoWorkerYet, node.CauseConfirming, node.CauseLeaseExpiredAway, node.CauseBelowFloor, node.CauseNewWorker:
		return true
	}
	return false
}

func frozenView() wrongView {
	return wrongView{"ZooKeeper has lost data, so new nodes get no worker.", "Start the missing nodes again, or see flaked cluster thaw --help."}
}

// refusalOf returns why a worker refuses, and what to do. The causes are in the order of
// docs/operations.md.
func refusalOf(w node.Snapshot) wrongView {
	const wait = "Wait. The node recovers by itself."
	switch w.Cause {
	case node.CauseNoWorkerYet:
		return wrongView{"Starting: no worker acquired yet.", "Wait. If this lasts, see Recent events below."}
	case node.CauseZooKeeperUnreachable:
		return wrongView{"ZooKeeper does not answer" + because(w.ZooKeeper.Error) + ", and this node cannot start without it.",
			"Start ZooKeeper, or correct --zk or the network to ZooKeeper. The node then starts by itself."}
	case node.CauseZooKeeperSlow:
		return wrongView{"ZooKeeper answers too slowly for this node to acquire a worker.", "Wait: the node keeps trying. If this lasts, find out what slows ZooKeeper down."}
	case node.CauseAllWorkersHeld:
		return wrongView{"All workers of the cluster are held, so this node has none.", "Run fewer nodes, or wait until a lease expires: flaked status shows which."}
	case node.CauseRegistrationFrozen:
		return frozenView()
	case node.CauseConfirming, node.CauseLeaseExpiredAway:
		return wrongView{"Confirming that no other node uses this node's worker.", "Wait " + upTo(w.Cluster.ConfirmMs) + ". The node then serves by itself."}
	case node.CauseNewWorker:
		return wrongView{"This machine's clock went back, so the node acquired another worker.", "Wait " + upTo(w.Cluster.ConfirmMs) + ". Then find out why the clock went back."}
	case node.CauseBelowFloor:
		return wrongView{"Waiting until the clock passes the previous process's reserved bound.", "Wait 3 s. If this lasts, this machine's clock went back. Set the clock right."}
	case node.CauseReservedBound:
		return wrongView{"The node cannot write its state directory" + because(w.Disk.Error) + ".", "Free space on the disk of --state-dir, or repair the disk. The node then serves again by itself."}
	case node.CauseLeaseBorrowed:
		return wrongView{"A burst borrowed all time up to the end of the lease.", "Wait. If this happens often, check whether heartbeats renew the lease."}
	case node.CauseClockBehind:
		return wrongView{"This machine's clock went back. It is behind the last ID by " + about(w.Clock.BehindMs) + ".",
			"Check with chronyc tracking, then set the clock right. The node then serves again by itself. Do not restart it."}
	case node.CauseClockWrong:
		return wrongView{fmt.Sprintf("This machine's clock is wrong%s, compared with %d of %d other clocks.", amount(w.Clock.WorstMs), w.Clock.Against, w.Clock.Voters),
			"Check with chronyc tracking, then set the clock right. The node then serves again by itself. Do not restart it."}
	case node.CauseLeaseExpired:
		return wrongView{"The lease has expired: ZooKeeper did not answer for too long" + because(w.ZooKeeper.Error) + ".",
			"Restore ZooKeeper, or the network to it. The node then serves again by itself. Do not restart it."}
	case node.CauseLostWorker:
		return wrongView{"This node lost its worker and is acquiring another one. The log says why.", wait}
	case node.CauseTimeUsedUp:
		return wrongView{"The layout's time field is used up, or this machine's clock is far ahead.", "Check the clock. If it is right, make a new cluster with another layout."}
	case node.CauseDraining:
		return wrongView{"The node drains: it still answers open connections, and stops soon.", "No action needed. Clients use other nodes."}
	case node.CauseStopping:
		return wrongView{"The node is stopping.", "No action needed. Clients use other nodes."}
	}
	return wrongView{"The node refuses: -" + w.Code + " " + w.Reason, "See Refusals in docs/operations.md."}
}

func withoutZooKeeper(w ownView) wrongView {
	if w.FromCache && !w.BeatLate && w.ZooKeeper.Error == "" {
		return wrongView{"The node started from its state directory. ZooKeeper has no record of this start yet.", "Check whether ZooKeeper answers. If it does, this passes within seconds."}
	}
	since := ""
	if age := w.ZooKeeper.HeartbeatAgeMs; age != nil {
		since = " since " + utc(w.NowMs-*age) + " UTC"
	}
	wrong := wrongView{"ZooKeeper has not answered this node" + since + because(w.ZooKeeper.Error) + ".", "Restore ZooKeeper, or the network to it."}
	if w.Ready && w.LeaseEndsMs != nil {
		wrong.Do = "Restore ZooKeeper, or the network to it, before " + utc(*w.LeaseEndsMs) + " UTC. A restart does not help."
	}
	return wrong
}

// troubleOf returns the problem that a word of Snapshot.Degraded stands for. It returns an
// empty one if another text of the page already covers it.
func troubleOf(trouble string, w node.Snapshot) wrongView {
	const setClock = "Check the time synchronisation of this machine (chronyc tracking)."
	switch trouble {
	case node.TroubleDisk:
		if w.Ready {
			return wrongView{"The node cannot write its state directory" + because(w.Disk.Error) + ".", "Free space on the disk of --state-dir or repair the disk, at once."}
		}
	case node.TroubleOffset:
		if w.Clock.WorstMs != nil && !w.Cause.OfClock() {
			return wrongView{fmt.Sprintf("This machine's clock is%s, compared with the worst of %d other clocks.", strings.TrimPrefix(amount(w.Clock.WorstMs), ":"), w.Clock.Voters), setClock}
		}
	case node.TroubleLeap:
		return wrongView{"This machine's clock leapt " + about(w.Clock.UnfollowedLeapMs) + " ahead. No other clock confirms the leap, and IDs do not follow it.", setClock}
	case node.TroubleCoasting:
		return wrongView{"This machine's clock went back by " + about(w.Clock.CoastingMs) + ". The node coasts: IDs continue from the monotonic clock.", setClock}
	case node.TroubleFrozen:
		return frozenView()
	// withoutZooKeeper covers these two.
	case node.TroubleZooKeeper, node.TroubleFromCache:
	default:
		return wrongView{trouble, "See degraded in docs/admin.md."}
	}
	return wrongView{}
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
	return ": " + clusterview.Size(*ms) + way
}

// about formats a duration in ms, rounded to seconds, so that the text changes seldom.
func about(ms int64) string {
	if ms >= 1000 {
		ms = (ms + 500) / 1000 * 1000
	}
	return clusterview.Brief(ms)
}

// upTo formats a longest wait in ms. 0 means that it is not known yet.
func upTo(ms int64) string {
	if ms == 0 {
		return "a little"
	}
	return "up to " + clusterview.Brief(ms)
}
