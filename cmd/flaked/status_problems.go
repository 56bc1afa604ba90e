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

// problems returns the problems that need attention, one sentence for each kind: what is wrong,
// and what to do. suspect is the doubt about this machine's clock: see presentTime.
func problems(r statusReport, suspect time.Duration) []string {
	var out []string
	add := func(found []workerReport, one, many, advice string) {
		switch len(found) {
		case 0:
		case 1:
			out = append(out, fmt.Sprintf("%s %s: %s", whom(found), one, advice))
		default:
			out = append(out, fmt.Sprintf("%s %s: %s", whom(found), many, advice))
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
		out = append(out, fmt.Sprintf("registration is frozen for %s until %s, %s: let their nodes come back, or see flaked cluster thaw --help",
			r.Cluster.frozenWorkers(), time.UnixMilli(r.Cluster.FrozenUntilMs).UTC().Format(time.RFC3339), r.Cluster.frozenWhy()))
	}
	add(pick(func(w workerReport) bool { return w.State == stateLost }),
		"has no record in ZooKeeper that can be read", "have no record in ZooKeeper that can be read",
		"ZooKeeper lost data or it was overwritten; a running owner puts it back, else it is kept for a whole lease")
	add(pick(func(w workerReport) bool { return w.State == stateDetached && w.Says != nil }),
		"is detached, and its node answers: it is cut off from ZooKeeper", "are detached, and their nodes answer: they are cut off from ZooKeeper",
		"look for what is between it and ZooKeeper before its lease ends")
	add(pick(func(w workerReport) bool { return w.State == stateDetached && w.Says == nil }),
		"is detached, its node not connected to ZooKeeper", "are detached, their nodes not connected to ZooKeeper",
		"start it again, or look for what is between it and ZooKeeper")
	for cause, found := range byCause(r.Workers) {
		add(found, "refuses to serve"+cause.said, "refuse to serve"+cause.said, cause.advice)
	}
	add(pick(func(w workerReport) bool { return live(w) && w.LeaseLeftMs != nil && *w.LeaseLeftMs <= 0 }),
		"is past its lease and may issue nothing", "are past their leases and may issue nothing",
		"its log says why it cannot extend it")
	add(pick(func(w workerReport) bool {
		return live(w) && w.ReportAgeMs != nil && *w.ReportAgeMs > reportPatience(w.HeartbeatMs)
	}),
		"is connected and has missed three heartbeats", "are connected and have missed three heartbeats",
		"look whether the process hangs")
	for _, trouble := range troubles {
		add(pick(func(w workerReport) bool { return w.Says != nil && slices.Contains(w.Says.Degraded, trouble.word) }),
			trouble.text, trouble.text, trouble.advice)
	}
	if suspect > 0 {
		out = append(out, fmt.Sprintf("the newest report is %s old by this machine's clock: either that is ahead, or no live node reports any more", brief(suspect)))
	}
	off := pick(func(w workerReport) bool { return w.offset != nil && w.offset.Beyond(limits.WarnSkew) })
	clock := "check its time synchronisation (chronyc tracking)"
	if measured := len(pick(func(w workerReport) bool { return w.offset != nil })); measured > 1 && 2*len(off) > measured {
		clock = "most of them are, so check the clock of ZooKeeper's leader first"
	}
	off = slices.DeleteFunc(off, func(w workerReport) bool { // reported above
		cause, refuses := w.refuses()
		return refuses && cause.OfClock()
	})
	add(off, "has a clock more than 500 ms off that of ZooKeeper's leader", "have clocks more than 500 ms off that of ZooKeeper's leader", clock)
	if s := r.Summary; s.Free*20 < s.Slots {
		out = append(out, fmt.Sprintf("%d of %d workers are free: stop nodes with --release-on-exit, wait for leases to end, or make a cluster with more worker bits", s.Free, s.Slots))
	}
	if out == nil {
		out = []string{} // a list in JSON, too
	}
	return out
}

// refusal words the reason why nodes refuse, and says what to do.
type refusal struct{ said, advice string }

// advice says what to do about a refusal, by its cause.
var advice = map[node.Cause]string{
	node.CauseClockWrong:     "check with chronyc tracking, then set its clock right; the node then serves again by itself",
	node.CauseClockBehind:    "its clock went back: make its time synchronisation slew; the node then serves again by itself",
	node.CauseNoDurableBound: "look at the disk of its state directory; it goes on by itself",
	node.CauseLeaseOver:      "mend its way to ZooKeeper; it goes on by itself",
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
			r := refusal{advice: "its READY and its log say why; usually its clock is wrong"}
			if cause != "" {
				r.said = " (" + string(cause) + ")"
				if text := advice[cause]; text != "" {
					r.advice = text
				} else {
					r.advice = "docs/operations.md has it under Refusals"
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
	{node.TroubleDisk, "cannot write to the state directory", "look at its disk: what is reserved lasts for seconds"},
	{node.TroubleLeap, "has a machine's clock that leapt ahead, which nobody confirms", "check with chronyc tracking, then set it right"},
	{node.TroubleCoasting, "goes on without the machine's clock, which went back", "check with chronyc tracking, then set it right"},
	{node.TroubleFromCache, "runs from the state directory alone", "look for what is between it and ZooKeeper"},
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

func joinProblems(problems []string) string { return strings.Join(problems, "; ") }
