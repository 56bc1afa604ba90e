//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/figures"
)

// sequencesTables returns the tables of named sequences for docs/performance.md.
func (r *Results) sequencesTables() string {
	if r.Sequences == nil {
		return ""
	}
	s := r.Sequences
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s by `make bench-sequences`: %s, %s for each measurement, contenders taking turns within each round. %s; flaked %s on a real ZooKeeper, Redis %s. ",
		r.When.Format(time.DateOnly), figures.Medians(r.Rounds), time.Duration(r.Seconds*float64(time.Second)), r.Machine, r.Versions["flaked"], r.Versions["Redis"])
	fmt.Fprintf(&b, "The ceiling of the sequences is %s values a second, so that it never binds. Their values have 19 digits, as IDs and the line of the floor have.\n\n", figures.Thousands(benchCeiling))
	for _, t := range []struct {
		title string
		table *figures.Table
	}{
		{"", s.goalTable(r)},
		{"Over TCP, 50 connections. \"Of the floor\" is the median of the ratios to the C floor of the same round:", s.wireTable(r)},
		{fmt.Sprintf("%s requests a second over 50 connections, while blocks switch and while they do not:", figures.Thousands(switchRate)), s.switchTable(r)},
		{"A name that a quiet node has not seen before, 200 names of each kind, one every 20 ms. Another connection asks for a value of another sequence every millisecond:", s.firstTable()},
		{"One value without a network. Goroutines share one sequence:", s.processTable(r)},
		{"Resident memory of an idle node:", s.memoryTable()},
		{"One strict sequence on three nodes and three ZooKeepers, all on this machine's cores. Each connection has one request for one number at a time. \"A write\" is one write to ZooKeeper by another client, in the same seconds and just before:", s.strictTable()},
	} {
		if t.title != "" {
			fmt.Fprintf(&b, "%s\n\n", t.title)
		}
		b.WriteString(t.table.String() + "\n")
	}
	b.WriteString(s.clusterText())
	return b.String()
}

func (s *Sequences) wire(r *Results) *Results { return &Results{Runs: s.Runs, Rounds: r.Rounds} }

// sequenceWho lists the contenders in the order of the tables.
var sequenceWho = []Contender{floorC, flakedNext, flakedIncr, flaked, flakedBefore, redis}

func (s *Sequences) wireTable(r *Results) *figures.Table {
	w, t := s.wire(r), &figures.Table{}
	head := []string{"requests a second"}
	for _, p := range pipelines {
		head = append(head, fmt.Sprintf("pipeline %d", p), "of the floor", "p99 us", "server CPU s / million")
	}
	t.Row(head...)
	for _, who := range sequenceWho {
		row, any := []string{label(who)}, false
		for _, p := range pipelines {
			name := gridName("tcp", 50, p)
			rate, ok := w.median(name, who, throughput)
			if !ok {
				row = append(row, "", "", "", "")
				continue
			}
			any = true
			ratio, _ := w.ratio(name, who, floorC, throughput)
			slow, _ := w.median(name, who, p99)
			cpu, _ := w.median(name, who, perMillion)
			row = append(row, figures.Thousands(rate), fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.0f", slow), fmt.Sprintf("%.3f", cpu))
		}
		if any {
			t.Row(row...)
		}
	}
	return t
}

// label names a contender in these tables.
func label(who Contender) string {
	switch who {
	case flaked:
		return "flaked, GET"
	case flakedBefore:
		return "flaked of `-before`, GET"
	}
	return string(who)
}

func (s *Sequences) switchTable(r *Results) *figures.Table {
	w, t := s.wire(r), &figures.Table{}
	t.Row("", "p50 us", "p99 us", "p99.9 us", "p99.9, of one block's")
	for _, who := range []Contender{flakedSteady, flakedSwitching} {
		row := []string{string(who)}
		for _, m := range []Metric{p50, p99, p999} {
			v, _ := w.median(switchCase, who, m)
			row = append(row, fmt.Sprintf("%.0f", v))
		}
		ratio, _ := w.ratio(switchCase, who, flakedSteady, p999)
		t.Row(append(row, fmt.Sprintf("%.2f", ratio))...)
	}
	return t
}

func (s *Sequences) firstTable() *figures.Table {
	t := &figures.Table{}
	t.Row("names", "median ms", "longest ms", "other connection: p99 us", "without new names: p99 us")
	for _, f := range s.First {
		t.Row(f.Names, fmt.Sprintf("%.1f", f.Median), fmt.Sprintf("%.1f", f.Max), fmt.Sprintf("%.0f", f.OtherP99), fmt.Sprintf("%.0f", f.QuietP99))
	}
	return t
}

// nanos returns the median of the time for a value.
func (s *Sequences) nanos(who string, goroutines, batch int) (float64, bool) {
	var values []float64
	for _, p := range s.Process {
		if p.Who == who && p.Goroutines == goroutines && p.Batch == batch {
			values = append(values, p.Nanos)
		}
	}
	return figures.Median(values)
}

func (s *Sequences) processTable(r *Results) *figures.Table {
	t := &figures.Table{}
	t.Row("", "values at a time", "goroutines", "ns for a value")
	for _, who := range []string{inProcess, inProcessNoClock, sqlite} {
		for _, batch := range []int{1, 64} {
			for _, goroutines := range []int{1, 2} {
				if v, ok := s.nanos(who, goroutines, batch); ok {
					t.Row(who, fmt.Sprint(batch), fmt.Sprint(goroutines), fmt.Sprintf("%.1f", v))
				}
			}
		}
	}
	return t
}

func (s *Sequences) memoryTable() *figures.Table {
	t := &figures.Table{}
	t.Row("", "MiB")
	for _, m := range s.Memory {
		t.Row(m.Node, fmt.Sprintf("%.1f", float64(m.RSS)/(1<<20)))
	}
	return t
}

// strictMedian returns the median of a figure over the rounds.
func (s *Sequences) strictMedian(nodes, conns int, of func(Strict) float64) (float64, bool) {
	var values []float64
	for _, one := range s.Strict {
		if one.Nodes == nodes && one.Conns == conns {
			values = append(values, of(one))
		}
	}
	return figures.Median(values)
}

func (s *Sequences) strictTable() *figures.Table {
	t := &figures.Table{}
	t.Row("nodes asked", "connections", "numbers a second", "p50 ms", "p99 ms", "a write: p50 ms", "p99 ms", "just before: p50 ms", "p99 ms", "writes a second")
	for n := range 2 * len(strictConns) {
		nodes, conns := []int{1, strictNodes}[n/len(strictConns)], strictConns[n%len(strictConns)]
		row := []string{fmt.Sprint(nodes), fmt.Sprint(conns)}
		for k, of := range []func(Strict) float64{
			func(s Strict) float64 { return s.Rate }, func(s Strict) float64 { return s.P50 }, func(s Strict) float64 { return s.P99 },
			func(s Strict) float64 { return s.WriteP50 }, func(s Strict) float64 { return s.WriteP99 },
			func(s Strict) float64 { return s.QuietWriteP50 }, func(s Strict) float64 { return s.QuietWrite }, func(s Strict) float64 { return s.Commits },
		} {
			v, ok := s.strictMedian(nodes, conns, of)
			switch {
			case !ok:
			case k == 0 || k == 7:
				row = append(row, figures.Thousands(v))
			default:
				row = append(row, fmt.Sprintf("%.1f", v))
			}
		}
		if len(row) > 2 {
			t.Row(row...)
		}
	}
	return t
}

func (s *Sequences) clusterText() string {
	var b strings.Builder
	c, m := s.Crowd, s.Many
	fmt.Fprintf(&b, "**A crowd.** %s Issuers in one process, each with a session of its own, ask for one cold name at once: half have a value after %.1f s, all after %.1f s. "+
		"%d requests were refused and sent again. ZooKeeper saw %s writes.\n\n",
		figures.Thousands(float64(c.Issuers)), c.Median, c.All, c.Refused, figures.Thousands(float64(c.Writes)))
	fmt.Fprintf(&b, "**Many sequences.** One Issuer uses %s sequences on one ZooKeeper. The first use of all of them takes %.0f s. A name then takes %.0f bytes of the Issuer's heap and %.0f of its resident memory, "+
		"where the name has 11 bytes. ZooKeeper has %.0f MiB resident (a heap of at most 512 MiB) for %.0f MiB of data. One more name is answered in %.1f ms. "+
		"Ten minutes later all records are due to be written again. In the minute after that, with every name asked for twice, ZooKeeper sees %.0f writes a second.\n",
		figures.Thousands(float64(m.Names)), m.FirstUse, m.Heap, m.RSS, float64(m.ZooKeeper)/(1<<20), float64(m.Data)/(1<<20), m.OneWaiting, m.Writes)
	return b.String()
}

func (s *Sequences) goalTable(r *Results) *figures.Table {
	t := &figures.Table{}
	t.Row("goal", "found", "reached")
	for _, g := range s.goals(r) {
		t.Row(g.Wanted, g.Found, string(g.Reached))
	}
	return t
}

// goals compares the figures with the goals.
func (s *Sequences) goals(r *Results) []Verdict {
	w := s.wire(r)
	var all []Verdict
	atLeast := func(what string, v float64, ok bool, least float64, unit string) {
		all = append(all, newGoal(what, fmt.Sprintf("at least %g%s", least, unit), fmt.Sprintf("%.3g%s", v, unit), ok, v >= least))
	}
	atMost := func(what string, v float64, ok bool, most float64, unit string) {
		all = append(all, newGoal(what, fmt.Sprintf("at most %g%s", most, unit), fmt.Sprintf("%.3g%s", v, unit), ok, v <= most))
	}
	of := func(pipeline int, who, to Contender) (float64, bool) {
		return w.ratio(gridName("tcp", 50, pipeline), who, to, throughput)
	}
	v, ok := of(1, flakedNext, floorC)
	atLeast("`NEXT` at 50 connections", 100*v, ok, 95, " % of the C floor")
	v, ok = of(16, flakedNext, floorC)
	atLeast("`NEXT`, pipeline 16", 100*v, ok, 80, " % of the C floor")
	v, ok = of(100, flakedNext, redis)
	atLeast("`NEXT`, pipeline 100", v, ok, 2, " times Redis `INCR`")
	v, ok = of(100, flakedIncr, redis)
	atLeast("`INCR` in RESP, pipeline 100", v, ok, 2, " times Redis `INCR`")
	v, ok = w.ratio(switchCase, flakedSwitching, flakedSteady, p999)
	atMost("p99.9 while blocks switch every 100 ms", v, ok, 1.1, " times that of one block")
	for _, f := range s.First {
		atMost("longest first use of a name, "+f.Names, f.Max, true, 10, " ms")
	}
	v, ok = s.nanos(inProcess, 1, 1)
	atMost("one value in process", v, ok, 25, " ns")
	atMost(fmt.Sprintf("%d Issuers ask for one cold name", s.Crowd.Issuers), s.Crowd.All, s.Crowd.Issuers > 0, 5, " s")
	atMost("writes a second for 100,000 sequences, all due at once", s.Many.Writes, s.Many.Names > 0, 500, "")
	atMost("memory of a node for a name", s.Many.Heap, s.Many.Names > 0, 400+11, " bytes")
	for _, m := range s.Memory {
		atMost("an idle node ("+m.Node+")", float64(m.RSS)/(1<<20), true, 25, " MiB")
	}
	v, ok = s.strictMedian(strictNodes, strictConns[len(strictConns)-1], func(s Strict) float64 { return s.Rate })
	atLeast("numbers of one strict sequence on three nodes", v, ok, 5000, " a second")
	v, ok = s.strictMedian(1, strictConns[1], func(s Strict) float64 { return s.P99 / s.WriteP99 })
	atMost("p99 of a strict sequence that one node issues", v, ok, 3, " times that of a write to ZooKeeper")
	if v, ok = of(1, flaked, flakedBefore); ok {
		all = append(all, newGoal("`GET`, of `-before`", "no slower", fmt.Sprintf("%.3f", v), true, v >= 0.98))
	}
	return all
}

func newGoal(what, wanted, found string, measured, ok bool) Verdict {
	if !measured {
		return Verdict{what + ": " + wanted, "", unmeasured}
	}
	return Verdict{what + ": " + wanted, found, reached(ok)}
}
