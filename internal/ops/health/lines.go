package health

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/words"
)

// Verdict returns the report in one line.
func (r Report) Verdict() string {
	serving, starting, wanted := r.countServing()
	heading := "healthy"
	switch all := len(r.Summary.Problems); {
	case all > 0:
		heading = words.Count(int64(all), "problem")
	case serving == 0 && starting > 0:
		heading = "starting"
	}
	facts := []string{fmt.Sprintf("%d of %d nodes serve", serving, wanted)}
	switch {
	case len(r.Workers) == 0:
		facts[0] = "no node has registered yet"
	case serving == 0 && r.Source == SourceNodes:
		facts[0] = "no node says that it serves"
	case serving == 0:
		facts[0] = "no node serves"
	case serving == 1 && wanted == 1:
		facts[0] = "1 node serves"
	case serving == wanted:
		facts[0] = fmt.Sprintf("%d nodes serve", serving)
	}
	if starting > 0 {
		facts = append(facts, fmt.Sprintf("%d starting", starting))
	}
	if s := r.Sequences; s != nil && s.Count > 0 {
		facts = append(facts, words.Count(int64(s.Count), "sequence"))
	}
	switch first, left := r.firstExpiry(), r.Summary.ShortestLeaseMs; {
	case first != nil:
		facts = append(facts, "the first lease expires in "+words.Duration(*first))
	case left != nil && *left > 0 && heading == "healthy":
		facts = append(facts, "ZooKeeper could fail for "+words.Duration(*left))
	}
	return heading + ": " + strings.Join(facts, ", ")
}

// firstExpiry returns the time until the first lease expires of the nodes that serve and cannot renew theirs, in
// milliseconds. It returns nil if there is no such node.
func (r Report) firstExpiry() (first *int64) {
	for _, p := range r.Summary.Problems {
		if !rowOf(p.Cause).cannotRenew {
			continue
		}
		for _, w := range r.Workers {
			affected := slices.Contains(p.Workers, w.Worker) && w.standing() == serves
			if left := w.LeaseLeft(); affected && left != nil && *left > 0 {
				first = shorter(first, left)
			}
		}
	}
	return first
}

// HeldLine counts the workers in each state.
func (s Summary) HeldLine() string {
	return fmt.Sprintf("%d of %d workers held: %d live, %d disconnected, %d stopped; %d releasing, %d "+
		"record-missing, %d free; %d ever used",
		s.Held, s.Slots, s.Live, s.Disconnected, s.Stopped, s.Releasing, s.RecordMissing, s.Free, s.Used)
}

// ClocksLine names the clock that is furthest off that of ZooKeeper's leader. It returns "" if no clock was compared.
func (r Report) ClocksLine() string {
	compared, worst := 0, WorkerReport{}
	for _, w := range r.Workers {
		if w.ClockOffsetMs == nil {
			continue
		}
		compared++
		if worst.ClockOffsetMs == nil || math.Abs(*w.ClockOffsetMs) > math.Abs(*worst.ClockOffsetMs) {
			worst = w
		}
	}
	switch compared {
	case 0:
		return ""
	case 1:
		return "1 clock compared with that of ZooKeeper's leader: " + worst.OffsetText()
	}
	return fmt.Sprintf("%d clocks compared with that of ZooKeeper's leader, furthest off: %s, %s", compared,
		Whom([]WorkerReport{worst}), worst.OffsetText())
}

// OffsetText formats the offset of the worker's clock and its uncertainty, "" if it is not known.
func (w WorkerReport) OffsetText() string {
	ms, uncertain, known := w.Offset()
	if !known {
		return ""
	}
	return words.Offset(ms, uncertain)
}

// Whom names one worker, or counts several and lists at most five of them. If a node has not said which worker it
// holds, Whom uses the names of nodes in place of the numbers of workers.
func Whom(workers []WorkerReport) string {
	var numbers, names []string
	for _, w := range workers {
		numbers, names = append(numbers, strconv.Itoa(w.Worker)), append(names, words.Clean(w.Name))
	}
	unknown := slices.ContainsFunc(workers, func(w WorkerReport) bool { return !w.HasNumber() })
	switch {
	case len(workers) > 1 && unknown:
		return fmt.Sprintf("%d nodes (%s)", len(workers), words.List(names, len(names)))
	case len(workers) > 1:
		return fmt.Sprintf("%d workers (%s)", len(workers), words.List(numbers, len(numbers)))
	case unknown:
		return "node " + names[0]
	case names[0] != "":
		return fmt.Sprintf("worker %s (%s)", numbers[0], names[0])
	}
	return "worker " + numbers[0]
}

// SaysText returns a node's own state in a few words.
func (w WorkerReport) SaysText() string {
	switch {
	case w.Says == nil:
		return string(w.Outcome)
	case !w.Says.Ready:
		return "not ready: " + string(w.Says.Cause)
	}
	// Other parts of the report cover clock offsets and freezes.
	troubles := slices.DeleteFunc(slices.Clone(w.Says.Degraded), func(trouble string) bool {
		return trouble == node.TroubleOffset || trouble == node.TroubleFrozen
	})
	if len(troubles) > 0 {
		for i, trouble := range troubles {
			troubles[i] = cmp.Or(shortTroubles[trouble], trouble)
		}
		return "ready, but " + strings.Join(troubles, ", ")
	}
	return "ready"
}

// shortTroubles has texts for the words of node.Troubles that do not say by themselves what is missing.
var shortTroubles = map[string]string{node.TroubleZooKeeper: "no ZooKeeper", node.TroubleDisk: "no writes to disk"}
