package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/words"
)

// problems returns the problems that need attention, the worst first. One problem names all workers that have it.
func problems(r Report) []Problem {
	type same struct{ cause, text string }
	var found []Problem
	who := make(map[same][]WorkerReport)
	for _, w := range r.Workers {
		for _, p := range slices.Concat(r.answerProblems(w), r.recordProblems(w)) {
			key := same{p.Cause, p.Text}
			if who[key] == nil {
				found = append(found, p)
			}
			who[key] = append(who[key], w)
		}
	}
	for i, p := range found {
		workers := who[same{p.Cause, p.Text}]
		found[i].Text = subject(p, workers) + p.Text
		for _, w := range workers {
			found[i].Workers = append(found[i].Workers, w.Worker)
		}
	}
	found = WorstFirst(slices.Concat(found, r.clusterProblems(), r.Sequences.Problems(r.Summary.NowMs)))
	if slices.ContainsFunc(found, func(p Problem) bool { return p.Cause == rowNoNodeServes.cause }) {
		for i := range found {
			found[i].Clients = strings.Replace(found[i].Clients, otherNodes, noIDs, 1)
		}
	}
	return found
}

// subject returns the workers that have a problem, as the beginning of its text.
func subject(p Problem, workers []WorkerReport) string {
	one, several := " refuses to serve", " refuse to serve"
	if stillAnswers(node.Cause(p.Cause)) {
		one, several = " is not ready", " are not ready"
	}
	switch {
	case workers[0].Says == nil && !workers[0].HasNumber():
		return "" // the text has its address
	case !p.isRefusal():
		return Whom(workers) + ": "
	case len(workers) > 1:
		one = several
	}
	return Whom(workers) + one + " (" + p.Cause + "): "
}

// answerProblems returns the problems of a worker that its node's answer shows. If the user named a node that has not
// answered, its silence is the problem. OwnWorker.Problems is for a worker of this process, and has details.
func (r Report) answerProblems(w WorkerReport) (out []Problem) {
	switch {
	case w.Says == nil && r.Source == SourceNodes:
		return []Problem{w.silence()}
	case w.Says == nil:
		return nil
	case r.showsRefusal(w):
		out = append(out, ProblemOf(cmp.Or(string(w.Says.Cause), rowRefusing.cause)))
	}
	recorded := r.Source != SourceNodes
	for _, trouble := range uncovered(w.Says.Degraded, w.Says.Cause, map[string]bool{
		node.TroubleFromCache: w.State == Disconnected,  // whyDisconnected covers it
		node.TroubleFrozen:    recorded,                 // ClusterReport.FrozenProblem covers it
		node.TroubleOffset:    recorded || w.ClockOff(), // recordProblems covers it
	}) {
		out = append(out, trouble.problem(""))
	}
	if w.Says.Dev {
		out = append(out, DevelopmentProblem)
	}
	return out
}

// recordProblems returns the problems of a worker that its record in ZooKeeper shows, compared with what its node says.
// With --addr, the node's answer takes the place of the record.
func (r Report) recordProblems(w WorkerReport) (out []Problem) {
	add := func(row row, details string) { out = append(out, row.problem(details)) }
	left, late := w.LeaseLeft(), w.ReportAgeMs != nil && *w.ReportAgeMs-r.suspectMs > ReportPatience(w.HeartbeatMs)
	if w.State == Live {
		if w.Says == nil && w.Refuses() {
			add(rowRefusing, "")
		}
		if left != nil && *left <= 0 {
			add(rowPastLease, "")
		}
		switch {
		case !late, w.zooKeeperRefuses(): // which is a problem of its own
		case w.Says != nil && !w.Says.ZooKeeperOK:
			add(rowNoZooKeeper, "")
		default:
			add(rowHeartbeatsMissed, "")
		}
		switch {
		case w.gaveNoAnswer():
			add(rowNoAnswer, " ("+cmp.Or(w.Why, string(w.Outcome))+")")
		case w.Outcome == AnotherNode:
			add(rowAnotherNode, w.inBrackets())
		}
	}
	switch w.State {
	case RecordMissing:
		add(rowNoRecord, "")
	case Disconnected:
		out = append(out, r.whyDisconnected(w)...)
	}
	if w.ClockOff() && !(w.Says != nil && w.Says.Cause.OfClock() && r.showsRefusal(w)) {
		add(rowClockOffset, ", compared with that of ZooKeeper's leader")
	}
	return out
}

// whyDisconnected returns the problem of a worker whose node is not connected to ZooKeeper, if it has one.
func (r Report) whyDisconnected(w WorkerReport) []Problem {
	switch {
	case w.gaveNoAnswer():
		return []Problem{rowDown.problem(w.inBrackets())}
	case w.Outcome == AnotherNode:
		return []Problem{rowReplaced.problem(w.inBrackets())}
	case w.Says == nil:
		return []Problem{rowDisconnected.problem("")}
	case w.zooKeeperRefuses(): // which is a problem of its own
	case w.standing() == starts: // it connects
	case !w.Says.ZooKeeperOK && (r.Source != SourceNodes || w.Says.Ready):
		return []Problem{rowNoZooKeeper.problem("")}
	case w.Says.ZooKeeperOK:
		return []Problem{rowNotShown.problem("")}
	}
	return nil
}

// inBrackets returns why there is no answer, for the end of a sentence, "" if that is not known.
func (w WorkerReport) inBrackets() string {
	if w.Why == "" {
		return ""
	}
	return " (" + w.Why + ")"
}

// zooKeeperRefuses reports whether the node says that ZooKeeper refuses writes: see zooKeeperRefusesWrites.
func (w WorkerReport) zooKeeperRefuses() bool {
	return w.Says != nil && zooKeeperRefusesWrites(w.Says.Degraded)
}

// silence returns the problem of a node that has not said how it is, in a report of SourceNodes.
func (w WorkerReport) silence() Problem {
	why := " at " + w.Address + " (" + cmp.Or(w.Why, string(w.Outcome)) + ")"
	switch p := rowSilent.problem(why); w.Outcome {
	case AccessDenied:
		return rowDenied.problem(why)
	case AnotherNode:
		p.Text, p.Advice = "No node of this cluster answers"+why, "Correct --addr or --cluster."
		return p
	default:
		return p
	}
}

// clusterProblems returns the problems of the whole cluster, and of reading it.
func (r Report) clusterProblems() (out []Problem) {
	if r.Source != SourceNodes && len(r.Workers) > 0 && !slices.ContainsFunc(r.Workers, WorkerReport.mayServe) {
		out = append(out, rowNoNodeServes.problem(""))
	}
	reachZooKeeper := func(w WorkerReport) bool { return w.Says != nil && w.Says.ZooKeeperOK }
	isDev := func(w WorkerReport) bool { return w.Says != nil && w.Says.Dev }
	switch left := r.Summary.ShortestLeaseMs; {
	case r.ZooKeeperError == "", slices.ContainsFunc(r.Workers, isDev): // a development node has no ZooKeeper
	case slices.ContainsFunc(r.Workers, reachZooKeeper):
		out = append(out, rowNotFromHere.problem(""))
	case left != nil:
		out = append(out, rowZooKeeperDown.problem(", and the next lease expires in "+words.Duration(*left)))
	default:
		out = append(out, rowZooKeeperDown.problem(""))
	}
	if p, frozen := r.Cluster.FrozenProblem(); frozen {
		out = append(out, p)
	}
	measured := pick(r.Workers, func(w WorkerReport) bool { return w.ClockOffsetMs != nil })
	if off := pick(r.Workers, WorkerReport.ClockOff); len(measured) > 1 && 2*len(off) > len(measured) {
		out = append(out, rowLeaderClock.problem(""))
	}
	if r.suspectMs > 0 {
		out = append(out, rowClockSuspect.problem(" "+words.Duration(r.suspectMs)))
	}
	if r.SequencesError != "" {
		out = append(out, rowSequencesUnread.problem(": "+r.SequencesError))
	}
	if s := r.Summary; r.Source != SourceNodes && s.FewFree() {
		out = append(out, rowFewFree.problem(fmt.Sprintf(": %d of %d", s.Free, s.Slots)))
	}
	return out
}

// FrozenProblem returns the problem of frozen registration, and whether there is one.
func (r ClusterReport) FrozenProblem() (p Problem, frozen bool) {
	until := " until " + time.UnixMilli(r.FrozenUntilMs).UTC().Format(time.RFC3339)
	if r.FrozenBy != "" {
		return rowFrozenByOperator.problem(until + ", by " + words.Clean(r.FrozenBy)), r.Frozen
	}
	return rowRegistrationFrozen.problem(until), r.Frozen
}

// gaveNoAnswer reports whether the node was asked and did not answer. A node that denied access, or has no address that
// can be reached from here, does not count.
func (w WorkerReport) gaveNoAnswer() bool { return w.Outcome == NoAnswer || w.Outcome == TimedOut }

// FewFree reports whether fewer than 5 % of the workers are free.
func (s Summary) FewFree() bool { return s.Free*20 < s.Slots }

func pick(all []WorkerReport, wanted func(WorkerReport) bool) (found []WorkerReport) {
	for _, v := range all {
		if wanted(v) {
			found = append(found, v)
		}
	}
	return found
}
