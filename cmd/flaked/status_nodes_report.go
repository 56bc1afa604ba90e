package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/clusterview"
)

// nodesPage shows what nodes say.
type nodesPage struct{ clusterview.NodesReport }

func (p nodesPage) verdict() error {
	if p.Summary.Answered == 0 {
		return &codedError{exitUnreachable, &problemsError{"no node answered", p.Summary.Problems}}
	}
	return degraded(p.Summary.Problems)
}

// print prints the table and the lines below it.
func (p nodesPage) print(w io.Writer, s style) error {
	t := textTable{}
	header := []string{"WORKER", "NAME", "ADDRESS", "SAYS", "HEARTBEAT", "LEASE", "VERSION"}
	if s.wide {
		header = append(header, "PHASE", "CLOCK", "IDS", "NODE", "WHY")
	}
	t.add(header...)
	for _, n := range p.Nodes {
		says := &t.add(nodeCells(n, s.wide)...)[nodeSaysColumn]
		if says.colour = green; n.Says == nil || !n.Says.Ready {
			says.colour = red
		}
	}
	if !s.wide {
		t.fit(s.columns, "VERSION", "HEARTBEAT", "ADDRESS")
	}
	if err := t.print(w, s.colour); err != nil {
		return err
	}
	return printLines(w, append([]string{""}, p.footer()...), s.columns)
}

const nodeSaysColumn = 3

func nodeCells(n clusterview.NodeReport, wide bool) []string {
	workers, name := joinNumbers(n.Workers), n.Name
	if n.Says == nil && len(n.Seen) > 0 { // parentheses mark what is as old as the addresses
		var seen []int
		for _, s := range n.Seen {
			seen = append(seen, s.Worker)
		}
		workers, name = "("+joinNumbers(seen)+")", "("+orDash(n.Seen[0].Name)+")"
	}
	cells := []string{workers, name, n.Address, n.SaysText(), "", "", n.Version}
	rest := []string{"", "", "", n.Node, n.Why}
	if n.Says != nil {
		if n.HeartbeatAgeMs != nil {
			cells[4] = clusterview.Brief(*n.HeartbeatAgeMs) + " ago"
		}
		cells[5] = span(n.Says.LeaseLeftMs)
		rest[0], rest[2] = n.Says.Phase, strconv.FormatInt(n.Says.IDs, 10)
		rest[1] = clusterview.WorkerReport{ClockOffsetMs: n.ClockOffsetMs, ClockUncertaintyMs: n.ClockUncertaintyMs}.OffsetText()
	}
	if wide {
		cells = append(cells, rest...)
	}
	for i, cell := range cells {
		cells[i] = printable(cell)
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

func (p nodesPage) footer() []string {
	var lines []string
	s, a := p.Summary, p.Addresses
	now := time.UnixMilli(s.NowMs)
	if p.ZooKeeper.Error != "" {
		lines = append(lines, "ZooKeeper was not read, so the values come from the nodes: "+p.ZooKeeper.Error)
	}
	if a.SavedMs != nil {
		when := "as ZooKeeper had them at " + clusterview.Instant(*a.SavedMs, now)
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
		first := slices.IndexFunc(p.Nodes, func(n clusterview.NodeReport) bool { return n.Says != nil && n.Says.LeaseLeftMs == s.ShortestLeaseMs })
		lines = append(lines, fmt.Sprintf("without ZooKeeper, every ready node lasts at least %s (first: %s)",
			clusterview.Brief(max(0, *s.ShortestLeaseMs)), clusterview.TheNodes(p.Nodes[first:first+1])))
	}
	return lines
}
