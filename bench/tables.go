//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/figures"
)

// sources lists the contenders in the order of the tables. floorC1000, which only the cases
// of GET 1000 have, and flakedGoroutines, which only greedyTable has, are not in it.
var sources = []Contender{floorC, floorGo, flaked, flakedRESP, flakedWide, memcached, redis, redisLine, flakedSpin, flakedBefore, flakedWideBefore}

// tables returns the tables for docs/performance.md.
func (r *Results) tables(plot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.about())
	fmt.Fprintf(&b, "![Requests a second beside the C floor's, and p99](%s)\n\n", plot)
	for _, network := range networks {
		where := map[string]string{"tcp": "TCP on loopback", "unix": "A unix socket"}[network]
		fmt.Fprintf(&b, "### %s, 50 connections\n\n", where)
		b.WriteString(r.throughputs(network, 50).String())
		fmt.Fprintf(&b, "\nWithout pipelining, by connections:\n\n")
		b.WriteString(r.latencies(network).String() + "\n")
	}
	fmt.Fprintf(&b, "### 50,000 requests a second over 50 connections (open loop)\n\n%s\n", r.steadyTable())
	fmt.Fprintf(&b, "### GET 1000, 50 connections\n\n%s\n", r.batches())
	fmt.Fprintf(&b, "### Resident memory at 10,000 idle connections\n\n%s", r.idleTable())
	return b.String()
}

// about returns the paragraph that explains the tables.
func (r *Results) about() string {
	return fmt.Sprintf("Measured on %s by `make bench`: %s, %s for each measurement, contenders taking turns within each round, server and generator "+
		"pinned to a core each. %s; flaked %s on a real ZooKeeper, Redis %s, memcached %s with one thread. \"Of the "+
		"floor\" is the median of the ratios to the C floor of the same round: a server that answers a fixed line to every line. "+
		"A worker of the default layout makes at most 4.096 million IDs a second; where that binds, it is marked with *.",
		r.When.Format(time.DateOnly), figures.Medians(r.Rounds), time.Duration(r.Seconds*float64(time.Second)), r.Machine,
		r.Versions["flaked"], r.Versions["Redis"], r.Versions["memcached"])
}

// present returns the contenders that were measured in at least one of the cases.
func (r *Results) present(names ...string) []Contender {
	var out []Contender
	for _, who := range sources {
		if slices.ContainsFunc(names, func(name string) bool { return len(r.runs(name, who)) > 0 }) {
			out = append(out, who)
		}
	}
	return out
}

func (r *Results) throughputs(network string, conns int) *figures.Table {
	var names []string
	head := []string{"requests a second"}
	for _, p := range pipelines {
		names = append(names, gridName(network, conns, p))
		head = append(head, fmt.Sprintf("pipeline %d", p), "of the floor")
	}
	t := &figures.Table{}
	t.Row(head...)
	for _, who := range r.present(names...) {
		cells := []string{string(who)}
		for _, name := range names {
			cells = append(cells, r.rate(name, who), r.ofFloor(name, who))
		}
		t.Row(cells...)
	}
	return t
}

// rate returns a median throughput, with a * if it has reached the layout's ceiling.
func (r *Results) rate(name string, who Contender) string {
	v, ok := r.median(name, who, throughput)
	if !ok {
		return ""
	}
	mark := ""
	if (who == flaked || who == flakedRESP) && v >= atCeiling*ceiling {
		mark = "*"
	}
	return figures.Thousands(v) + mark
}

func (r *Results) ofFloor(name string, who Contender) string {
	if v, ok := r.ratio(name, who, floorC, throughput); ok {
		return fmt.Sprintf("%.2f", v)
	}
	return ""
}

// figure returns the median of a metric in a format, or "" if there is no measurement.
func (r *Results) figure(name string, who Contender, m Metric, format string) string {
	if v, ok := r.median(name, who, m); ok {
		return fmt.Sprintf(format, v)
	}
	return ""
}

func (r *Results) latencies(network string) *figures.Table {
	t := &figures.Table{}
	t.Row("connections", "", "requests a second", "of the floor", "p50 us", "p99 us", "p99.9 us", "server CPU s / million", "server busy")
	for _, conns := range connections {
		name := gridName(network, conns, 1)
		for _, who := range r.present(name) {
			t.Row(append([]string{fmt.Sprint(conns)}, r.line(name, who)...)...)
		}
	}
	return t
}

// line returns the table cells of a contender in a case.
func (r *Results) line(name string, who Contender) []string {
	share, _ := r.median(name, who, busy)
	return []string{
		string(who), r.rate(name, who), r.ofFloor(name, who), r.figure(name, who, p50, "%.0f"), r.figure(name, who, p99, "%.0f"),
		r.figure(name, who, p999, "%.0f"), r.figure(name, who, perMillion, "%.2f"), fmt.Sprintf("%.0f %%", 100*share),
	}
}

func (r *Results) steadyTable() *figures.Table {
	t := &figures.Table{}
	t.Row("", "p50 us", "p99 us", "p99.9 us", "server CPU s / million", "of the floor")
	for _, who := range r.present(openLoop) {
		ratio, _ := r.ratio(openLoop, who, floorC, perMillion)
		t.Row(string(who), r.figure(openLoop, who, p50, "%.0f"), r.figure(openLoop, who, p99, "%.0f"),
			r.figure(openLoop, who, p999, "%.0f"), r.figure(openLoop, who, perMillion, "%.2f"), fmt.Sprintf("%.2f", ratio))
	}
	return t
}

func (r *Results) batches() *figures.Table {
	t := &figures.Table{}
	t.Row("", "IDs a second", "of the floor", "p50 us", "p99 us", "server busy")
	for _, who := range append([]Contender{floorC1000}, sources...) {
		ids, ok := r.median(batchCase, who, func(b Bench) float64 { return b.IDsPerSecond })
		if !ok {
			continue
		}
		mark := ""
		if who != floorC1000 && who != flakedWide && ids >= atCeiling*ceiling {
			mark = "*"
		}
		ratio, _ := r.ratio(batchCase, who, floorC1000, throughput)
		share, _ := r.median(batchCase, who, busy)
		t.Row(string(who), figures.Thousands(ids)+mark, fmt.Sprintf("%.2f", ratio), r.figure(batchCase, who, p50, "%.0f"),
			r.figure(batchCase, who, p99, "%.0f"), fmt.Sprintf("%.0f %%", 100*share))
	}
	return t
}

func (r *Results) idleTable() *figures.Table {
	t := &figures.Table{}
	t.Row("MiB", "before", "connected", "after a request each")
	for _, i := range r.Idle {
		t.Row(string(i.Who), bare(i.Before), bare(i.Connected), bare(i.Served))
	}
	return t
}

func bare(bytes int64) string { return strings.TrimSuffix(mib(bytes), " MiB") }

// report returns the text of bench/REPORT.md: all targets and all figures.
func (r *Results) report() string {
	var b strings.Builder
	count := map[Reached]int{}
	for _, v := range r.verdicts() {
		count[v.Reached]++
	}
	fmt.Fprintf(&b, "# Targets and results\n\nWritten by `make bench`. Do not edit.\n\n%s\n\n", r.about())
	fmt.Fprintf(&b, "%d reached, %d not, %d not measured.\n\n%s\n", count[yes], count[no], count[unmeasured], r.verdictTable())
	for _, who := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(&b, "Not measured: %s: %s.\n\n", who, r.Missing[who])
	}
	b.WriteString("## Every case\n\n")
	var t figures.Table
	t.Row("case", "", "requests a second", "of the floor", "p50 us", "p99 us", "p99.9 us", "server CPU s / million", "server busy", "generator busy", "errors")
	for _, c := range cases() {
		for _, who := range append([]Contender{floorC1000}, sources...) {
			runs := r.runs(c.Name, who)
			if len(runs) == 0 {
				continue
			}
			var errors int64
			for _, b := range runs {
				errors += b.Errors.Total + b.Unanswered
			}
			client, _ := r.median(c.Name, who, clientBusy)
			t.Row(append(append([]string{c.Name}, r.line(c.Name, who)...), fmt.Sprintf("%.0f %%", 100*client), fmt.Sprint(errors))...)
		}
	}
	b.WriteString("c: connections, p: pipeline. Where the generator is as busy as the server or more, the server can do better than is shown.\n\n")
	b.WriteString(t.String())
	return b.String()
}
