package admin

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flaked/flaked/node"
)

// problemsOf is what somebody should look after: what this node says of itself,
// what `flaked status` says of the cluster, and what is too young for that. There
// are no ages in it: it is read aloud when it changes.
func problemsOf(v view, c seen, slots []slotView) []string {
	var out []string
	add := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	out = ownProblems(v)
	switch {
	case c.err != nil:
		add("the cluster cannot be read from ZooKeeper: %s", oneLine(c.err.Error()))
	case v.Stale:
		add("the cluster is not being read: ZooKeeper does not answer")
	}
	out = append(out, c.Problems...)
	var late []string
	for _, w := range slots {
		if w.Late && *w.ReportAgeMs <= 3*w.HeartbeatMs+1000 { // later on it is among c.Problems
			late = append(late, strconv.Itoa(w.Worker))
		}
	}
	if len(late) > 0 && !v.Stale {
		add("a heartbeat is overdue of worker %s", few(late))
	}
	return out
}

// ownProblems are those of this process's workers; what is the same for several
// is said once.
func ownProblems(v view) (out []string) {
	whose := map[string][]string{}
	var order []string
	for _, w := range v.Own {
		add := func(text string) {
			if whose[text] == nil {
				order = append(order, text)
			}
			whose[text] = append(whose[text], label(w.Snapshot))
		}
		if !w.Ready && v.Ready {
			add(fmt.Sprintf("it refuses: -%s %s", w.Code, w.Reason))
		}
		for _, t := range w.Degraded {
			add(troubleText(t, w.Snapshot))
		}
		if w.BeatLate && !slices.Contains(w.Degraded, node.TroubleZooKeeper) {
			add("its heartbeat is overdue: ZooKeeper has not acknowledged one in time")
		}
	}
	for _, text := range order {
		who := "this node"
		if len(whose[text]) < len(v.Own) {
			who = "this node's worker " + few(whose[text])
		}
		out = append(out, who+": "+text)
	}
	return out
}

func few(numbers []string) string {
	if len(numbers) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(numbers[:5], ", "), len(numbers)-5)
	}
	return strings.Join(numbers, ", ")
}

// troubleText is a word of Snapshot.Degraded in a sentence.
func troubleText(trouble string, w node.Snapshot) string {
	switch trouble {
	case node.TroubleZooKeeper:
		return "no contact with ZooKeeper; it serves until its lease ends: " + oneLine(w.ZooKeeper.Error)
	case node.TroubleFromCache:
		return "it runs from its state directory alone, and ZooKeeper does not know of that yet"
	case node.TroubleDisk:
		return "its state directory takes no writes, it serves what is reserved: " + oneLine(w.Disk.Error)
	case node.TroubleOffset:
		if w.Clock.WorstMs != nil {
			way := "ahead of"
			if *w.Clock.WorstMs < 0 {
				way = "behind"
			}
			return fmt.Sprintf("its clock is %s %s that of another voter (%d of %d differ by more than 5 s)",
				offsetLength(math.Abs(*w.Clock.WorstMs)), way, w.Clock.Against, w.Clock.Voters)
		}
	case node.TroubleLeap:
		return fmt.Sprintf("the machine's clock has leapt %s ahead, which nobody confirms: IDs do not follow", brief(w.Clock.UnfollowedLeapMs))
	case node.TroubleFrozen:
		return "registration is frozen, as ZooKeeper has lost data: new nodes get no worker"
	}
	return trouble
}
