package clusterview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/node"
)

// problems returns the problems that need attention, the worst first. One problem names all
// workers that have it.
func problems(r Report) []Problem {
	var out problemList
	all := func(wanted func(WorkerReport) bool) []WorkerReport { return pick(r.Workers, wanted) }

	causes, refusing := byCause(r.Workers, WorkerReport.Refuses)
	for _, cause := range causes {
		said, advice := "", "Its READY and its log say why. Usually its clock is wrong."
		if cause != "" {
			said, advice = " ("+string(cause)+")", cmp.Or(refusalAdvice[cause], seeRefusals)
		}
		out.workers(Critical, refusing[cause], "refuses to serve"+said, "refuse to serve"+said, advice)
	}
	out.workers(Critical, all(func(w WorkerReport) bool { return w.State == Live && w.LeaseLeft() != nil && *w.LeaseLeft() <= 0 }),
		"is past its lease and must not issue IDs", "are past their leases and must not issue IDs",
		"The node's log says why it cannot renew the lease.")
	disconnected := func(wanted func(WorkerReport) bool) []WorkerReport {
		return all(func(w WorkerReport) bool { return w.State == Disconnected && wanted(w) })
	}
	out.workers(Critical, disconnected(WorkerReport.unanswered),
		"is down or cut off: its node is not connected to ZooKeeper and does not answer", "are down or cut off: their nodes are not connected to ZooKeeper and do not answer",
		"Start the node again, or restore its network. When its lease expires, the worker is free, and this is no longer reported.")
	replaced := func(w WorkerReport) bool { return w.Asked == AnotherNode }
	out.workers(Warning, disconnected(replaced),
		"is held by a node that is not connected to ZooKeeper, and another node answers at its address", "are held by nodes that are not connected to ZooKeeper, and other nodes answer at their addresses",
		"If the old node is gone for good, wait until its lease expires, or release the worker: flaked workers release --help. Otherwise start the old node again.")
	out.workers(Critical, disconnected(func(w WorkerReport) bool { return w.Says == nil && !w.unanswered() && !replaced(w) }),
		"is disconnected: its node is not connected to ZooKeeper", "are disconnected: their nodes are not connected to ZooKeeper",
		"Start the node again, or restore its connection to ZooKeeper.")
	out.workers(Critical, disconnected(func(w WorkerReport) bool { return w.Says != nil && !w.Says.ZooKeeperOK }),
		"is disconnected, but its node answers: it is disconnected from ZooKeeper", "are disconnected, but their nodes answer: they are disconnected from ZooKeeper",
		"Restore the connection to ZooKeeper before the lease expires.")
	out.workers(Warning, disconnected(func(w WorkerReport) bool { return w.Says != nil && w.Says.ZooKeeperOK && !Starting(w.Says.Cause) }),
		"is not shown as live in ZooKeeper yet, but its node answers and reaches it", "are not shown as live in ZooKeeper yet, but their nodes answer and reach it",
		"Wait for the next heartbeat. If this lasts, the log of the node says why.")
	out.workers(Critical, all(func(w WorkerReport) bool {
		return w.State == Live && w.ReportAgeMs != nil && *w.ReportAgeMs > ReportPatience(w.HeartbeatMs)
	}),
		"is connected and has missed three heartbeats", "are connected and have missed three heartbeats",
		"Check whether the process was killed a moment ago, or hangs.")
	out.workers(Warning, all(WorkerReport.silent),
		"is live in ZooKeeper, but its node does not answer at its admin address", "are live in ZooKeeper, but their nodes do not answer at their admin addresses",
		"Check whether the process runs or hangs, and the network to the address (ADMIN in -o wide).")
	out.workers(Warning, all(func(w WorkerReport) bool { return w.State == Live && w.Asked == AnotherNode }),
		"has an admin address at which another node answers", "have admin addresses at which other nodes answer",
		"Give each node an --admin and --advertise address of its own.")
	for _, trouble := range troubles {
		out.workers(trouble.severity, all(func(w WorkerReport) bool { return w.troubled(trouble.word) }),
			trouble.text, trouble.text, trouble.advice)
	}
	out.workers(Warning, all(func(w WorkerReport) bool { return w.State == RecordMissing }),
		"has no readable record in ZooKeeper", "have no readable record in ZooKeeper",
		"ZooKeeper lost the record, or it was overwritten. A running holder restores it. Otherwise the worker is kept for a whole lease.")
	if p, frozen := r.Cluster.FrozenProblem(); frozen {
		out = append(out, p)
	}
	off, advice := wrongClocks(r.Workers)
	out.workers(Warning, off, "has a clock more than 500 ms off that of ZooKeeper's leader", "have clocks more than 500 ms off that of ZooKeeper's leader", advice)
	if r.suspect > 0 {
		out.add(Warning, fmt.Sprintf("the newest report is %s old by this machine's clock", Brief(r.suspect)),
			"Either this clock is ahead, or no live node reports any more. After an outage of ZooKeeper, wait for the next heartbeats.")
	}
	if s := r.Summary; s.FewFree() {
		out.add(Warning, fmt.Sprintf("%d of %d workers are free", s.Free, s.Slots), FreeWorkers+".")
	}
	return out.sorted()
}

// FrozenProblem returns the problem of frozen registration, and whether there is one.
func (r ClusterReport) FrozenProblem() (p Problem, frozen bool) {
	text := fmt.Sprintf("registration is frozen until %s, %s", time.UnixMilli(r.FrozenUntilMs).UTC().Format(time.RFC3339), r.FrozenWhy())
	advice := thawAdvice
	if r.FrozenBy != "" {
		advice = "Running nodes serve on. Wait, or ask the operator whether flaked cluster thaw may end it early."
	}
	return Problem{Warning, text, advice}, r.Frozen
}

// outage returns the problem that no node serves, if all live nodes have said so.
func outage(workers []WorkerReport) []Problem {
	live := pick(workers, func(w WorkerReport) bool { return w.State == Live })
	mayServe := func(w WorkerReport) bool { return w.Says == nil || w.Says.Ready || Starting(w.Says.Cause) }
	if len(live) == 0 || slices.ContainsFunc(live, mayServe) {
		return nil
	}
	return []Problem{{Critical, "no node serves, so clients get no IDs", "The lines below say what to do."}}
}

// troubled reports whether the worker's node names a trouble that no refusal covers.
func (w WorkerReport) troubled(word string) bool {
	return w.Says != nil && slices.Contains(w.Says.Degraded, word) && (word != node.TroubleDisk || w.Says.Ready)
}

// silent reports whether the worker is live in ZooKeeper, and its node was asked at its admin
// address and did not answer. A node that denied access, or has no address that can be
// reached from here, is not silent.
func (w WorkerReport) silent() bool {
	return w.State == Live && w.unanswered()
}

// unanswered reports whether the node was asked at its admin address and did not answer.
func (w WorkerReport) unanswered() bool { return w.Asked == NoAnswer || w.Asked == TimedOut }

// FewFree reports whether fewer than 5 % of the workers are free.
func (s Summary) FewFree() bool { return s.Free*20 < s.Slots }

// FreeWorkers says what to do if few workers are free.
const FreeWorkers = "Stop nodes with --release-on-exit, wait for leases to expire, or create a cluster with more worker bits"

// wrongClocks returns the workers whose clocks are off, and what to do. It leaves out those that
// refuse because of it.
func wrongClocks(workers []WorkerReport) (off []WorkerReport, advice string) {
	off = pick(workers, WorkerReport.ClockOff)
	measured := len(pick(workers, func(w WorkerReport) bool { return w.ClockOffsetMs != nil }))
	advice = checkClock
	if measured > 1 && 2*len(off) > measured {
		advice = "Most clocks are off, so check the clock of ZooKeeper's leader first."
	}
	return slices.DeleteFunc(off, func(w WorkerReport) bool {
		cause, refuses := w.Refuses()
		return refuses && cause.OfClock()
	}), advice
}

// WhatToDo returns the advice of the problems of one worker, "" if it has none.
func (w WorkerReport) WhatToDo() string {
	var all []string
	for _, p := range problems(Report{Workers: []WorkerReport{w}}) {
		all = append(all, p.Advice)
	}
	return strings.Join(all, " ")
}

// Refuses reports whether a live worker's node refuses to serve, with the cause if it is known.
// The node's own answer counts more than its last report to ZooKeeper.
func (w WorkerReport) Refuses() (cause node.Cause, refuses bool) {
	switch {
	case w.State != Live:
		return "", false
	case w.Says == nil:
		return "", w.Phase == "refusing"
	}
	return w.Says.Cause, !w.Says.Ready && (w.Says.Phase == "refusing" || w.Says.Phase == "serving")
}

const seeRefusals = "See docs/troubleshooting.md."

const (
	setClock   = "Check with chronyc tracking, then set the clock right. The node then serves again by itself. Do not restart it."
	checkClock = "Check its time synchronisation (chronyc tracking)."
	thawAdvice = "Start the missing nodes again, or see flaked cluster thaw --help."
	justWait   = "Wait. The node then serves by itself."
)

// refusalAdvice says what to do about a refusal, by its cause.
var refusalAdvice = map[node.Cause]string{
	node.CauseNoWorkerYet:          "Wait. If this lasts, the node's log says why.",
	node.CauseZooKeeperUnreachable: "Start ZooKeeper, or correct --zk or the network to ZooKeeper. The node then starts by itself.",
	node.CauseZooKeeperSlow:        "Wait: the node keeps trying. If this lasts, find out what slows ZooKeeper down.",
	node.CauseConfirming:           justWait,
	node.CauseLeaseExpiredAway:     justWait,
	node.CauseNewWorker:            "Wait. Then find out why the clock went back.",
	node.CauseBelowFloor:           "Wait 3 s. If this lasts, the machine's clock went back. Set the clock right.",
	node.CauseReservedBound:        "Free space on the disk of --state-dir, or repair the disk. The node then serves again by itself.",
	node.CauseLeaseBorrowed:        "Wait. If this happens often, check whether heartbeats renew the lease.",
	node.CauseClockBehind:          setClock,
	node.CauseClockWrong:           setClock + " If it is right, the other clocks are wrong: flaked doctor says whose.",
	node.CauseLeaseExpired:         restoreZK + ". The node then serves again by itself. Do not restart it.",
	node.CauseLostWorker:           justWait,
	node.CauseTimeUsedUp:           "Check the clock. If it is right, make a new cluster with another layout.",
	node.CauseDraining:             "An operator stops it. No action needed: clients use other nodes.",
	node.CauseStopping:             "No action needed: clients use other nodes.",
}

// trouble is a word of node.Troubles, what it means, and what to do.
type trouble struct {
	severity           Severity
	word, text, advice string
}

// troubles are those that only the nodes know of, in the words of /v1/status.
var troubles = []trouble{
	{Critical, node.TroubleDisk, "cannot write to the state directory", "Check its disk. The reserved bound is only seconds ahead."},
	{Warning, node.TroubleLeap, "runs on a machine whose clock leapt ahead, unconfirmed by ZooKeeper and peers", checkClock},
	{Warning, node.TroubleCoasting, "coasts, because the machine's clock went back", checkClock},
	{Warning, node.TroubleFromCache, "runs only from its state directory", "Restore its connection to ZooKeeper."},
}

// byCause groups what refuses by its cause. causes has the causes in the order of all.
func byCause[T any](all []T, refuses func(T) (node.Cause, bool)) (causes []node.Cause, found map[node.Cause][]T) {
	found = make(map[node.Cause][]T)
	for _, v := range all {
		cause, is := refuses(v)
		if !is {
			continue
		}
		if found[cause] == nil {
			causes = append(causes, cause)
		}
		found[cause] = append(found[cause], v)
	}
	return causes, found
}

func pick[T any](all []T, wanted func(T) bool) (found []T) {
	for _, v := range all {
		if wanted(v) {
			found = append(found, v)
		}
	}
	return found
}

// Whom names one worker, or counts several and lists at most five of them.
func Whom(workers []WorkerReport) string {
	var numbers []string
	for _, w := range workers {
		numbers = append(numbers, strconv.Itoa(w.Worker))
	}
	switch {
	case len(workers) > 1:
		return fmt.Sprintf("%d workers (%s)", len(workers), atMostFive(numbers))
	case workers[0].Name != "":
		return fmt.Sprintf("worker %d (%s)", workers[0].Worker, Clean(workers[0].Name))
	}
	return "worker " + numbers[0]
}

// atMostFive joins names, and shortens a longer list.
func atMostFive(names []string) string {
	if len(names) > 5 {
		names = append(names[:5:5], "...")
	}
	return strings.Join(names, ", ")
}
