package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/timeguard"
)

// problems are what somebody should look after, a sentence for each kind: what
// is wrong, and what to do.
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
		out = append(out, fmt.Sprintf("registration is frozen for workers 0 to %d until %s, as ZooKeeper lost data: let their nodes come back, or see flaked cluster thaw --help",
			r.Cluster.FrozenUsed, time.UnixMilli(r.Cluster.FrozenUntilMs).UTC().Format(time.RFC3339)))
	}
	add(pick(func(w workerReport) bool { return w.State == stateLost }),
		"has no record in ZooKeeper that can be read", "have no record in ZooKeeper that can be read",
		"ZooKeeper lost data or it was overwritten; a running owner puts it back, else it is kept for a whole lease")
	add(pick(func(w workerReport) bool { return w.State == stateDetached }),
		"is detached, its node not connected to ZooKeeper", "are detached, their nodes not connected to ZooKeeper",
		"start it again, or look for what is between it and ZooKeeper")
	add(pick(func(w workerReport) bool { return live(w) && w.Phase == "refusing" }),
		"refuses to serve", "refuse to serve",
		"its READY and its log say why; mostly its clock is wrong")
	add(pick(func(w workerReport) bool { return live(w) && w.LeaseLeftMs != nil && *w.LeaseLeftMs <= 0 }),
		"is past its lease and may issue nothing", "are past their leases and may issue nothing",
		"its log says why it cannot extend it")
	add(pick(func(w workerReport) bool {
		return live(w) && w.ReportAgeMs != nil && *w.ReportAgeMs > reportPatience(w.HeartbeatMs)
	}),
		"is connected and has missed three heartbeats", "are connected and have missed three heartbeats",
		"look whether the process hangs")
	if suspect > 0 {
		out = append(out, fmt.Sprintf("the newest report is %s old by this machine's clock: either that is ahead, or no live node reports any more", brief(suspect)))
	}
	off := pick(func(w workerReport) bool { return w.offset != nil && w.offset.Beyond(timeguard.WarnSkew) })
	advice := "check its time synchronisation (chronyc tracking)"
	if measured := len(pick(func(w workerReport) bool { return w.offset != nil })); measured > 1 && 2*len(off) > measured {
		advice = "most of them are, so check the clock of ZooKeeper's leader first"
	}
	add(off, "has a clock more than 500 ms off that of ZooKeeper's leader", "have clocks more than 500 ms off that of ZooKeeper's leader", advice)
	if s := r.Summary; s.Free*20 < s.Slots {
		out = append(out, fmt.Sprintf("%d of %d workers are free: stop nodes with --release-on-exit, wait for leases to end, or make a cluster with more worker bits", s.Free, s.Slots))
	}
	if out == nil {
		out = []string{} // a list in JSON, too
	}
	return out
}

// whom names workers, a few of them if they are many.
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
