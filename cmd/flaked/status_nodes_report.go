package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/node"
)

// nodesReport is the JSON of `flaked status` if ZooKeeper was not read: what nodes say
// themselves. Scripts rely on it: fields may be added, but not changed.
type nodesReport struct {
	// Source is "nodes". In a statusReport it is "zookeeper".
	Source    string        `json:"source"`
	ZooKeeper unreadReport  `json:"zookeeper"`
	Addresses addressReport `json:"addresses"`
	Nodes     []nodeReport  `json:"nodes"`
	Summary   nodesSummary  `json:"summary"`
}

// unreadReport says which ZooKeeper could not be read and why. Both fields are empty
// with --addr, which reads none.
type unreadReport struct {
	Connect string `json:"connect"`
	Error   string `json:"error"`
}

// addressReport says where the addresses come from.
type addressReport struct {
	// From is "--addr", or "cache": the addresses that ZooKeeper had when it was last
	// read.
	From string `json:"from"`
	// SavedMs is when ZooKeeper was read, and AgeMs is the time since then. Both are null for
	// --addr. AgeMs is also null if this machine's clock has gone back since.
	SavedMs *int64 `json:"saved_ms"`
	AgeMs   *int64 `json:"age_ms"`
	// Left is the number of nodes that the cache had no room for.
	Left int `json:"left"`
}

type nodesSummary struct {
	Nodes    int `json:"nodes"`
	Answered int `json:"answered"`
	Ready    int `json:"ready"`
	// ShortestLeaseMs is the time for which all ready nodes may go on without ZooKeeper. It is
	// null if no node is ready.
	ShortestLeaseMs *int64   `json:"shortest_lease_ms"`
	NowMs           int64    `json:"now_ms"` // ages and leases are counted from here
	Degraded        bool     `json:"degraded"`
	Problems        []string `json:"problems"`
}

// The values of Source, and of addressReport.From.
const (
	sourceZooKeeper = "zookeeper"
	sourceNodes     = "nodes"
	fromAddr        = "--addr"
	fromCache       = "cache"
)

// cachedAddresses returns the origin of addresses that were saved before now.
func cachedAddresses(last lastSeen, now time.Time) addressReport {
	a := addressReport{From: fromCache, SavedMs: &last.SavedMs, Left: last.Left}
	if age := now.UnixMilli() - last.SavedMs; age >= 0 {
		a.AgeMs = &age
	}
	return a
}

// assessNodes returns the report of what nodes say, with ages and leases as of now.
func assessNodes(zk unreadReport, addresses addressReport, nodes []nodeReport, now time.Time) nodesReport {
	r := nodesReport{Source: sourceNodes, ZooKeeper: zk, Addresses: addresses, Nodes: make([]nodeReport, len(nodes))}
	s := &r.Summary
	s.Nodes, s.NowMs = len(nodes), now.UnixMilli()
	for i, n := range nodes {
		n = n.until(now)
		r.Nodes[i] = n
		if n.Says == nil {
			continue
		}
		s.Answered++
		if !n.Says.Ready {
			continue
		}
		s.Ready++
		if left := n.Says.LeaseLeftMs; left != nil && (s.ShortestLeaseMs == nil || *left < *s.ShortestLeaseMs) {
			s.ShortestLeaseMs = left
		}
	}
	s.Problems = nodesProblems(r)
	s.Degraded = len(s.Problems) > 0
	return r
}

// nodesProblems returns the problems that need attention, in one sentence for each kind.
func nodesProblems(r nodesReport) []string {
	out := []string{}
	if r.ZooKeeper.Error != "" {
		out = append(out, r.noZooKeeper())
	}
	if silent := r.pick(func(n nodeReport) bool { return n.Says == nil && !n.isDown() }); len(silent) > 0 {
		out = append(out, fmt.Sprintf("%s did not answer (%s). Check the process and the network to it.", theNodes(silent), whyNot(silent[0])))
	}
	out = append(out, r.notReady()...)
	if found := r.pick(nodeReport.partly); len(found) > 0 {
		out = append(out, fmt.Sprintf("%s: only some of the workers make IDs. The node's log says why.", theNodes(found)))
	}
	for _, trouble := range nodeTroubles {
		if trouble.word == node.TroubleZooKeeper && r.ZooKeeper.Error != "" {
			continue // the first problem covers this
		}
		found := r.pick(func(n nodeReport) bool { return n.Says != nil && slices.Contains(n.Says.Degraded, trouble.word) })
		if len(found) > 0 {
			out = append(out, fmt.Sprintf("%s %s. %s", theNodes(found), trouble.text, trouble.advice))
		}
	}
	return out
}

func (r nodesReport) pick(wanted func(nodeReport) bool) (found []nodeReport) {
	for _, n := range r.Nodes {
		if wanted(n) {
			found = append(found, n)
		}
	}
	return found
}

// noZooKeeper returns what to do about a ZooKeeper that cannot be reached: nodes
// that can reach it show that it runs.
func (r nodesReport) noZooKeeper() string {
	if reach := r.pick(func(n nodeReport) bool { return n.Says != nil && n.Says.ZooKeeperOK }); len(reach) > 0 {
		return fmt.Sprintf("ZooKeeper cannot be reached from here, but %s can reach it. Check --zk (FLAKED_ZK) and the network.", theNodes(reach))
	}
	return "ZooKeeper cannot be reached. Start it again before the leases expire."
}

// notReady returns a sentence for each cause for which nodes are not ready.
func (r nodesReport) notReady() (out []string) {
	byCause := make(map[node.Cause][]nodeReport)
	var causes []node.Cause // in the order of the nodes
	for _, n := range r.pick(func(n nodeReport) bool { return n.Says != nil && !n.Says.Ready }) {
		if byCause[n.Says.Cause] == nil {
			causes = append(causes, n.Says.Cause)
		}
		byCause[n.Says.Cause] = append(byCause[n.Says.Cause], n)
	}
	for _, cause := range causes {
		is := "is"
		if len(byCause[cause]) > 1 {
			is = "are"
		}
		what := cmp.Or(advice[cause], seeRefusals)
		out = append(out, fmt.Sprintf("%s %s not ready (%s). %s", theNodes(byCause[cause]), is, cause, what))
	}
	return out
}

// nodeTroubles has every word of node.Troubles: unlike troubles, also those that
// status takes from ZooKeeper's records when it can read them.
var nodeTroubles = slices.Concat(troubles, []trouble{
	{node.TroubleZooKeeper, "has no contact with ZooKeeper", "Restore its connection to ZooKeeper before its lease expires."},
	{node.TroubleOffset, "has a clock more than 500 ms off another's", "Check its time synchronisation (chronyc tracking)."},
	{node.TroubleFrozen, "reports that registration is frozen", "Let the other nodes come back, or see flaked cluster thaw --help."},
})

func whyNot(n nodeReport) string {
	return cmp.Or(n.Why, n.Asked)
}

// theNodes returns the names of nodes, at most five.
func theNodes(nodes []nodeReport) string {
	const shown = 5
	var names []string
	for _, n := range nodes[:min(shown, len(nodes))] {
		names = append(names, n.whom())
	}
	if len(nodes) > shown {
		names = append(names, "...")
	}
	if len(nodes) == 1 {
		return "node " + names[0]
	}
	return fmt.Sprintf("%d nodes (%s)", len(nodes), strings.Join(names, ", "))
}

func (r nodesReport) verdict() error {
	switch why := joinProblems(r.Summary.Problems); {
	case r.Summary.Answered == 0:
		return exitWith(exitUnreachable, "no node answered: %s", why)
	case r.Summary.Degraded:
		return exitWith(exitDegraded, "degraded: %s", why)
	}
	return nil
}

// print prints the table and the lines below it.
func (r nodesReport) print(w io.Writer, wide, colour bool) error {
	t := textTable{}
	header := []string{"WORKER", "NAME", "ADDRESS", "SAYS", "HEARTBEAT", "LEASE", "VERSION"}
	if wide {
		header = append(header, "PHASE", "CLOCK", "IDS", "NODE", "WHY")
	}
	t.add(header...)
	for _, n := range r.Nodes {
		t.add(n.cells(wide)...)
		if n.Says == nil || !n.Says.Ready {
			t.rows[len(t.rows)-1][nodeSaysColumn].colour = red
		} else {
			t.rows[len(t.rows)-1][nodeSaysColumn].colour = green
		}
	}
	if err := t.print(w, colour); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(r.footer(), "\n"))
	return err
}

const nodeSaysColumn = 3

func (n nodeReport) cells(wide bool) []string {
	workers, name := joinNumbers(n.Workers), n.Name
	if n.Says == nil && len(n.Seen) > 0 { // parentheses mark what is as old as the addresses
		var seen []int
		for _, s := range n.Seen {
			seen = append(seen, s.Worker)
		}
		workers, name = "("+joinNumbers(seen)+")", "("+orDash(n.Seen[0].Name)+")"
	}
	cells := []string{workers, name, n.Address, n.says(), "", "", n.Version}
	rest := []string{"", "", "", n.Node, n.Why}
	if n.Says != nil {
		if n.HeartbeatAgeMs != nil {
			cells[4] = brief(millis(*n.HeartbeatAgeMs)) + " ago"
		}
		cells[5] = span(n.Says.LeaseLeftMs)
		rest[0], rest[2] = n.Says.Phase, strconv.FormatInt(n.Says.IDs, 10)
		rest[1] = offsetCell(workerReport{ClockOffsetMs: n.ClockOffsetMs, ClockUncertaintyMs: n.ClockUncertaintyMs})
	}
	if wide {
		cells = append(cells, rest...)
	}
	for i, cell := range cells {
		cells[i] = orDash(clean(cell))
	}
	return cells
}

func joinNumbers(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

func (r nodesReport) footer() []string {
	var lines []string
	s, a := r.Summary, r.Addresses
	now := time.UnixMilli(s.NowMs)
	if r.ZooKeeper.Error != "" {
		lines = append(lines, "ZooKeeper was not read, so the values come from the nodes: "+r.ZooKeeper.Error)
	}
	if a.SavedMs != nil {
		when := "as ZooKeeper had them at " + instant(*a.SavedMs, now)
		if a.AgeMs == nil {
			when += ", which is in the future: this machine's clock went back"
		}
		lines = append(lines, "the addresses, and the values in parentheses, are "+when)
	}
	if a.Left > 0 {
		lines = append(lines, fmt.Sprintf("%d more nodes were not cached, and are not asked", a.Left))
	}
	lines = append(lines, fmt.Sprintf("%d of %d nodes answered, %d of them ready, at %s", s.Answered, s.Nodes, s.Ready, now.UTC().Format(timeFormat)))
	if s.ShortestLeaseMs != nil {
		first := slices.IndexFunc(r.Nodes, func(n nodeReport) bool { return n.Says != nil && n.Says.LeaseLeftMs == s.ShortestLeaseMs })
		lines = append(lines, fmt.Sprintf("without ZooKeeper, every ready node lasts at least %s (first: %s)",
			brief(millis(max(0, *s.ShortestLeaseMs))), theNodes(r.Nodes[first:first+1])))
	}
	return lines
}
