package clusterview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/node"
)

// AssessNodes returns the report of what nodes say, with ages and leases as of now.
func AssessNodes(zk Unread, addresses Addresses, nodes []NodeReport, now time.Time) NodesReport {
	r := NodesReport{Source: SourceNodes, ZooKeeper: zk, Addresses: addresses, Nodes: make([]NodeReport, len(nodes))}
	s := &r.Summary
	s.Nodes, s.NowMs = len(nodes), now.UnixMilli()
	for i, n := range nodes {
		n = n.until(now)
		r.Nodes[i] = n
		if n.Says == nil {
			continue
		}
		s.Answered++
		if n.Says.Ready {
			s.Ready++
			s.ShortestLeaseMs = Shorter(s.ShortestLeaseMs, n.Says.LeaseLeftMs)
		}
	}
	s.Problems = nodesProblems(r)
	s.Degraded = len(s.Problems) > 0
	return r
}

// nodesProblems returns the problems that need attention, the worst first. One problem names all
// nodes that have it.
func nodesProblems(r NodesReport) []Problem {
	var out problemList
	if r.ZooKeeper.Error != "" {
		out.add(r.noZooKeeper())
	}
	if denied := pick(r.Nodes, func(n NodeReport) bool { return n.Asked == AccessDenied }); len(denied) > 0 {
		out.add(Warning, fmt.Sprintf("%s denied access (%s)", TheNodes(denied), cmp.Or(denied[0].Why, denied[0].Asked)), "Give --token-file or --tls, as its answer says.")
	}
	if silent := pick(r.Nodes, func(n NodeReport) bool { return n.Says == nil && n.Asked != AccessDenied && !n.isDown() }); len(silent) > 0 {
		out.add(Critical, fmt.Sprintf("%s did not answer (%s)", TheNodes(silent), cmp.Or(silent[0].Why, silent[0].Asked)), "Check the process and the network to it.")
	}
	r.notReady(&out)
	if found := pick(r.Nodes, NodeReport.partly); len(found) > 0 {
		out.add(Warning, TheNodes(found)+": only some of the workers make IDs", "The node's log says why.")
	}
	for _, trouble := range nodeTroubles {
		if trouble.word == node.TroubleZooKeeper && r.ZooKeeper.Error != "" {
			continue // the first problem covers this
		}
		found := pick(r.Nodes, func(n NodeReport) bool { return n.Says != nil && slices.Contains(n.Says.Degraded, trouble.word) })
		if len(found) > 0 {
			out.add(trouble.severity, TheNodes(found)+" "+trouble.text, trouble.advice)
		}
	}
	return out.sorted()
}

// noZooKeeper returns the problem of a ZooKeeper that cannot be reached: nodes that can reach
// it show that it runs.
func (r NodesReport) noZooKeeper() (severity Severity, text, advice string) {
	if reach := pick(r.Nodes, func(n NodeReport) bool { return n.Says != nil && n.Says.ZooKeeperOK }); len(reach) > 0 {
		return Warning, fmt.Sprintf("ZooKeeper cannot be reached from here, but %s can reach it", TheNodes(reach)), "Check --zk (FLAKED_ZK) and the network."
	}
	if left := r.Summary.ShortestLeaseMs; left != nil {
		return Critical, "ZooKeeper cannot be reached", "Start it again within " + Brief(*left) + ": then the next lease expires."
	}
	return Critical, "ZooKeeper cannot be reached", "Start it again."
}

// notReady adds a problem for each cause for which nodes are not ready.
func (r NodesReport) notReady(out *problemList) {
	causes, found := byCause(r.Nodes, func(n NodeReport) (node.Cause, bool) {
		if n.Says == nil {
			return "", false
		}
		return n.Says.Cause, !n.Says.Ready
	})
	for _, cause := range causes {
		is := "is"
		if len(found[cause]) > 1 {
			is = "are"
		}
		out.add(Critical, fmt.Sprintf("%s %s not ready (%s)", TheNodes(found[cause]), is, cause), cmp.Or(refusalAdvice[cause], seeRefusals))
	}
}

// nodeTroubles has every word of node.Troubles: unlike troubles, also those that
// status takes from ZooKeeper's records when it can read them.
var nodeTroubles = slices.Concat(troubles, []trouble{
	{Critical, node.TroubleZooKeeper, "has no contact with ZooKeeper", "Restore its connection to ZooKeeper before its lease expires."},
	{Warning, node.TroubleOffset, "has a clock more than 500 ms off another's", checkClock},
	{Warning, node.TroubleFrozen, "reports that registration is frozen", thawAdvice},
})

// TheNodes returns the names of nodes, at most five.
func TheNodes(nodes []NodeReport) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.whom())
	}
	if len(nodes) == 1 {
		return "node " + names[0]
	}
	return fmt.Sprintf("%d nodes (%s)", len(nodes), atMostFive(names))
}
