package main

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/node"
)

// problems returns the problems that need attention. For each kind it has one sentence on what
// is wrong, and then sentences on what to do. suspect is the doubt about this machine's clock: see presentTime.
func problems(r statusReport, suspect time.Duration) []string {
	var out []string
	add := func(found []workerReport, one, many, advice string) {
		switch len(found) {
		case 0:
		case 1:
			out = append(out, fmt.Sprintf("%s %s. %s", whom(found), one, advice))
		default:
			out = append(out, fmt.Sprintf("%s %s. %s", whom(found), many, advice))
		}
	}
	pick := func(wanted func(workerReport) bool) (found []workerReport) {
		for _, w := range r.Workers {
			if wanted(w) {
				found = append(found, w)
			}
		}
		return found
	}
	live := func(w workerReport) bool { return w.State == stateLive }

	if r.Cluster.Frozen {
		out = append(out, fmt.Sprintf("registration is frozen for %s until %s, %s. Let their nodes come back, or see flaked cluster thaw --help.",
			r.Cluster.frozenWorkers(), time.UnixMilli(r.Cluster.FrozenUntilMs).UTC().Format(time.RFC3339), r.Cluster.frozenWhy()))
	}
	add(pick(func(w workerReport) bool { return w.State == stateRecordMissing }),
		"has no readable record in ZooKeeper", "have no readable record in ZooKeeper",
		"ZooKeeper lost the record, or it was overwritten. A running holder restores it. Otherwise the worker is kept for a whole lease.")
	add(pick(func(w workerReport) bool { return w.State == stateDisconnected && w.Says != nil }),
		"is disconnected, but its node answers: it is disconnected from ZooKeeper", "are disconnected, but their nodes answer: they are disconnected from ZooKeeper",
		"Restore the connection to ZooKeeper before the lease expires.")
	add(pick(func(w workerReport) bool { return w.State == stateDisconnected && w.Says == nil }),
		"is disconnected: its node is not connected to ZooKeeper", "are disconnected: their nodes are not connected to ZooKeeper",
		"Start the node again, or restore its connection to ZooKeeper.")
	for cause, found := range byCause(r.Workers) {
		add(found, "refuses to serve"+cause.said, "refuse to serve"+cause.said, cause.advice)
	}
	add(pick(func(w workerReport) bool { return live(w) && w.LeaseLeftMs != nil && *w.LeaseLeftMs <= 0 }),
		"is past its lease and must not issue IDs", "are past their leases and must not issue IDs",
		"The node's log says why it cannot renew the lease.")
	add(pick(func(w workerReport) bool {
		return live(w) && w.ReportAgeMs != nil && *w.ReportAgeMs > reportPatience(w.HeartbeatMs)
	}),
		"is connected and has missed three heartbeats", "are connected and have missed three heartbeats",
		"Check whether the process hangs.")
	for _, trouble := range troubles {
		add(pick(func(w workerReport) bool { return w.Says != nil && slices.Contains(w.Says.Degraded, trouble.word) }),
			trouble.text, trouble.text, trouble.advice)
	}
	if suspect > 0 {
		out = append(out, fmt.Sprintf("the newest report is %s old by this machine's clock. Either this clock is ahead, or no live node reports any more.", brief(suspect)))
	}
	off := pick(func(w workerReport) bool { return w.offset != nil && w.offset.Beyond(limits.WarnSkew) })
	clock := "Check its time synchronisation (chronyc tracking)."
	if measured := len(pick(func(w workerReport) bool { return w.offset != nil })); measured > 1 && 2*len(off) > measured {
		clock = "Most clocks are off, so check the clock of ZooKeeper's leader first."
	}
	off = slices.DeleteFunc(off, func(w workerReport) bool { // reported above
		cause, refuses := w.refuses()
		return refuses && cause.OfClock()
	})
	add(off, "has a clock more than 500 ms off that of ZooKeeper's leader", "have clocks more than 500 ms off that of ZooKeeper's leader", clock)
	if s := r.Summary; s.Free*20 < s.Slots {
		out = append(out, fmt.Sprintf("%d of %d workers are free. Stop nodes with --release-on-exit, wait for leases to expire, or create a cluster with more worker bits.", s.Free, s.Slots))
	}
	if out == nil {
		out = []string{} // a list in JSON, too
	}
	return out
}

// refusal words the reason why nodes refuse, and says what to do.
type refusal struct{ said, advice string }

const seeRefusals = "See Refusals in docs/operations.md."

// advice says what to do about a refusal, by its cause.
var advice = map[node.Cause]string{
	node.CauseClockWrong:    "Check with chronyc tracking, then set the clock right. The node then serves again by itself.",
	node.CauseClockBehind:   "The clock went back. Make its time synchronisation slew. The node then serves again by itself.",
	node.CauseReservedBound: "Check the disk of its state directory. The node resumes by itself.",
	node.CauseLeaseExpired:  "Restore its connection to ZooKeeper. The node resumes by itself.",
}

// byCause yields the live workers that refuse to serve, grouped by their nodes' cause, or by ""
// for an unknown cause. The groups are in the order of the workers.
func byCause(workers []workerReport) iter.Seq2[refusal, []workerReport] {
	var causes []node.Cause
	found := make(map[node.Cause][]workerReport)
	for _, w := range workers {
		cause, refuses := w.refuses()
		if !refuses {
			continue
		}
		if found[cause] == nil {
			causes = append(causes, cause)
		}
		found[cause] = append(found[cause], w)
	}
	return func(yield func(refusal, []workerReport) bool) {
		for _, cause := range causes {
			r := refusal{advice: "Its READY and its log say why. Usually its clock is wrong."}
			if cause != "" {
				r.said = " (" + string(cause) + ")"
				if text := advice[cause]; text != "" {
					r.advice = text
				} else {
					r.advice = seeRefusals
				}
			}
			if !yield(r, found[cause]) {
				return
			}
		}
	}
}

// refuses reports whether a live worker's node refuses to serve, with the cause if it is known.
// The node's own answer counts more than its last report to ZooKeeper.
func (w workerReport) refuses() (cause node.Cause, refuses bool) {
	switch {
	case w.State != stateLive:
		return "", false
	case w.Says == nil:
		return "", w.Phase == "refusing"
	}
	return w.Says.Cause, !w.Says.Ready && (w.Says.Phase == "refusing" || w.Says.Phase == "serving")
}

// trouble is a word of node.Troubles, what it means, and what to do.
type trouble struct{ word, text, advice string }

// troubles are those that only the nodes know of, in the words of /v1/status.
var troubles = []trouble{
	{node.TroubleDisk, "cannot write to the state directory", "Check its disk. The reserved bound is only seconds ahead."},
	{node.TroubleLeap, "runs on a machine whose clock leapt ahead, unconfirmed by ZooKeeper and peers", "Check with chronyc tracking, then set the clock right."},
	{node.TroubleCoasting, "coasts, because the machine's clock went back", "Check with chronyc tracking, then set the clock right."},
	{node.TroubleFromCache, "runs only from its state directory", "Restore its connection to ZooKeeper."},
}

// whom names one worker, or counts several and lists at most five of them.
func whom(workers []workerReport) string {
	if len(workers) == 1 {
		if name := workers[0].Name; name != "" {
			return fmt.Sprintf("worker %d (%s)", workers[0].Worker, clean(name))
		}
		return fmt.Sprintf("worker %d", workers[0].Worker)
	}
	const shown = 5
	var numbers []string
	for _, w := range workers[:min(shown, len(workers))] {
		numbers = append(numbers, strconv.Itoa(w.Worker))
	}
	if len(workers) > shown {
		numbers = append(numbers, "...")
	}
	return fmt.Sprintf("%d workers (%s)", len(workers), strings.Join(numbers, ", "))
}

func joinProblems(problems []string) string { return joinSentences(problems) }
