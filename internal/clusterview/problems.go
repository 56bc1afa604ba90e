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

	refuses := WorkerReport.Refuses
	if r.Source == SourceNodes {
		r.askedNodes(&out)
		refuses = WorkerReport.notReady
	}
	causes, refusing := byCause(r.Workers, refuses)
	for _, of := range causes {
		said, row := "", cause{Critical, "", "Its READY and its log say why. Usually its clock is wrong."}
		if of != "" {
			said, row = " ("+string(of)+")", refusalOf(of, "")
		}
		if text := strings.Replace(row.text, "%s", "", 1); text != "" {
			said += ": " + text
		}
		out.workers(Critical, refusing[of], "refuses to serve"+said, "refuse to serve"+said, row.advice)
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
	out.workers(Critical, disconnected(func(w WorkerReport) bool {
		return w.Says != nil && !w.Says.ZooKeeperOK && (r.Source != SourceNodes || w.Says.Ready)
	}),
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
	out.workers(Warning, all(func(w WorkerReport) bool { return w.State == Live && w.unanswered() }),
		"is live in ZooKeeper, but its node does not answer at its admin address", "are live in ZooKeeper, but their nodes do not answer at their admin addresses",
		"Check whether the process runs or hangs, and the network to the address (admin in -o json).")
	out.workers(Warning, all(func(w WorkerReport) bool { return w.State == Live && w.Asked == AnotherNode }),
		"has an admin address at which another node answers", "have admin addresses at which other nodes answer",
		"Give each node an --admin and --advertise address of its own.")
	for _, word := range node.Troubles() {
		if r.covers(word) {
			continue
		}
		row := troubles[word]
		text := strings.Replace(row.text, "%s", "", 1)
		out.workers(row.severity, all(func(w WorkerReport) bool { return w.troubled(word) }), text, text, row.advice)
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
	if s := r.Summary; r.Source != SourceNodes && s.FewFree() {
		out.add(Warning, fmt.Sprintf("%d of %d workers are free", s.Free, s.Slots), FreeWorkers+".")
	}
	return out.sorted()
}

// covers reports whether other problems of the report say what a trouble means, from what ZooKeeper has recorded.
func (r Report) covers(word string) bool {
	switch word {
	case node.TroubleZooKeeper:
		return true
	case node.TroubleOffset, node.TroubleFrozen:
		return r.Source != SourceNodes
	}
	return false
}

// askedNodes adds the problems of nodes that were asked without reading ZooKeeper.
func (r Report) askedNodes(out *problemList) {
	switch left := r.Summary.ShortestLeaseMs; {
	case r.ZooKeeperError == "":
	case slices.ContainsFunc(r.Workers, func(w WorkerReport) bool { return w.Says != nil && w.Says.ZooKeeperOK }):
		out.add(Warning, "ZooKeeper cannot be reached from here, but a node can reach it", "Check --zk (FLAKED_ZK) and the network.")
	case left != nil:
		out.add(Critical, "ZooKeeper cannot be reached", "Start it again within "+Brief(*left)+": then the next lease expires.")
	default:
		out.add(Critical, "ZooKeeper cannot be reached", "Start it again.")
	}
	for _, w := range r.Workers {
		switch why := " (" + cmp.Or(w.Why, w.Asked) + ")"; {
		case w.Says != nil:
		case w.Asked == NoStatus:
			out.add(Warning, "the state of the node at "+w.Address+" is unknown"+why, "Ask it for STATS and READY, or upgrade it.")
		case w.Asked == AccessDenied:
			out.add(Warning, "node at "+w.Address+" denied access"+why, "Give --token-file or --tls, as its answer says.")
		default:
			out.add(Critical, "node at "+w.Address+" did not answer"+why, "Check the process and the network to it.")
		}
	}
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

// unanswered reports whether the node was asked at its admin address and did not answer. A node that denied
// access, or has no address that can be reached from here, does not count.
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

// notReady reports whether a node has said that it is not ready, and the cause.
func (w WorkerReport) notReady() (of node.Cause, is bool) {
	if w.Says == nil {
		return "", false
	}
	return w.Says.Cause, !w.Says.Ready
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

// byCause groups the workers that refuse by their causes, in the order of all.
func byCause(all []WorkerReport, refuses func(WorkerReport) (node.Cause, bool)) (causes []node.Cause, found map[node.Cause][]WorkerReport) {
	found = make(map[node.Cause][]WorkerReport)
	for _, w := range all {
		of, is := refuses(w)
		if !is {
			continue
		}
		if found[of] == nil {
			causes = append(causes, of)
		}
		found[of] = append(found[of], w)
	}
	return causes, found
}

func pick(all []WorkerReport, wanted func(WorkerReport) bool) (found []WorkerReport) {
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
	case workers[0].Worker < 0:
		return "node " + Clean(workers[0].Name)
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
