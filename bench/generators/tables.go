//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/figures"
)

// Results holds all measurements. The file of raw results has them in JSON.
type Results struct {
	When     time.Time
	Machine  figures.Machine
	Rounds   int
	Seconds  float64
	Versions map[string]string
	Samples  []Sample
}

// Metric returns one figure of a measurement.
type Metric func(s Sample) float64

func rate(s Sample) float64      { return float64(s.IDs) / s.Seconds }
func cpuNs(s Sample) float64     { return s.CPU * 1e9 / float64(s.IDs) }
func perCallNs(s Sample) float64 { return s.Seconds * 1e9 / float64(s.Calls) }
func aheadMs(s Sample) float64   { return float64(s.AheadMs) }
func perIDNs(s Sample) float64   { return s.Seconds * 1e9 / float64(s.IDs) }

// runs returns a contender's measurements in a case.
func (r *Results) runs(name, who string, goroutines int) figures.Rounds[Sample] {
	out := figures.Rounds[Sample]{}
	for _, s := range r.Samples {
		if s.Case == name && s.Who == who && s.Goroutines == goroutines {
			out[s.Round] = s
		}
	}
	return out
}

func (r *Results) median(name, who string, goroutines int, m Metric) (float64, bool) {
	return r.runs(name, who, goroutines).Median(m)
}

func (r *Results) ratio(name, who, to string, goroutines int, m Metric) (float64, bool) {
	return r.runs(name, who, goroutines).Ratio(r.runs(name, to, goroutines), m)
}

// figure returns the median of a metric as form writes it, or "" if there is no measurement.
func (r *Results) figure(name, who string, goroutines int, m Metric, form func(float64) string) string {
	if v, ok := r.median(name, who, goroutines, m); ok {
		return form(v)
	}
	return ""
}

func as(format string) func(float64) string {
	return func(v float64) string { return fmt.Sprintf(format, v) }
}

// most returns the largest value of a metric in any round of a case.
func (r *Results) most(name, who string, m Metric) float64 {
	v := 0.0
	for _, s := range r.Samples {
		if s.Case == name && s.Who == who {
			v = max(v, m(s))
		}
	}
	return v
}

// tables returns the tables for docs/performance.md.
func (r *Results) tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.about())
	fmt.Fprintf(&b, "%s\n", r.verdictTable())
	fmt.Fprintf(&b, "#### At the ceiling: 4,096 IDs a millisecond\n\n%s\n%s\n", r.ceilings(), r.differences())
	fmt.Fprintf(&b, "#### Without a ceiling: 21 bits of sequence\n\n%s\n", r.calls())
	fmt.Fprintf(&b, "#### Made in advance\n\n%s", r.inAdvance())
	return b.String()
}

// about returns the paragraph that explains the tables.
func (r *Results) about() string {
	return fmt.Sprintf("Measured on %s by `make bench-generators`: %s, %s for each measurement, contenders taking turns within each round, in one process. %s. %s. "+
		"All IDs were kept and checked, but for those at 50,000 a second and of the bursts, which were timed only.", r.When.Format(time.DateOnly), figures.Medians(r.Rounds), time.Duration(r.Seconds*float64(time.Second)), r.Machine, r.modules())
}

// modules returns the names and versions of the libraries that were measured.
func (r *Results) modules() string {
	var out []string
	for _, m := range []struct{ name, path string }{
		{"bwmarrin", "github.com/bwmarrin/snowflake"}, {"sonyflake", "github.com/sony/sonyflake/v2"}, {"yitter", "github.com/yitter/idgenerator-go"},
		{"godruoyi", "github.com/godruoyi/go-snowflake"}, {"GUAIK", "github.com/GUAIK-ORG/go-snowflake"}, {"influxdb", "github.com/influxdata/influxdb"},
	} {
		version, _, _ := strings.Cut(r.Versions[m.path], "-") // drops a pseudo-version's hash
		out = append(out, fmt.Sprintf("%s %s (`%s`)", m.name, version, m.path))
	}
	return strings.Join(out, ", ")
}

func (r *Results) ceilings() *figures.Table {
	t := &figures.Table{}
	head := []string{"IDs a second, CPU ns an ID"}
	for _, n := range ceilingGoroutines {
		head = append(head, goroutines(n), "CPU")
	}
	t.Row(append(head, "ahead of the clock", "longest wait", "given twice")...)
	for _, c := range bound() {
		row := []string{c.Name}
		for _, n := range ceilingGoroutines {
			row = append(row, r.figure(ceilingCase, c.Name, n, rate, figures.Thousands), r.figure(ceilingCase, c.Name, n, cpuNs, as("%.0f")))
		}
		t.Row(append(row,
			fmt.Sprintf("%.0f ms", r.most(ceilingCase, c.Name, aheadMs)),
			r.figure(ceilingCase, c.Name, 1, func(s Sample) float64 { return float64(s.PauseMs) }, as("%.0f ms")),
			r.wrong(c.Name))...)
	}
	return t
}

// wrong returns how many of a contender's IDs were given twice, in all cases, or "none".
func (r *Results) wrong(who string) string {
	var twice, ids int64
	for _, s := range r.Samples {
		if s.Who == who {
			twice, ids = twice+s.Twice, ids+s.IDs
		}
	}
	if twice == 0 {
		return "none"
	}
	return fmt.Sprintf("%s of %s", figures.Thousands(float64(twice)), figures.Thousands(float64(ids)))
}

func goroutines(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// differences returns the text below the table, which says how layouts differ.
func (r *Results) differences() string {
	var b strings.Builder
	b.WriteString("How far ahead is the most of any round, the longest wait that of one goroutine. Layouts are 41 bits of milliseconds, 10 of the worker, 12 of the sequence, but:\n\n")
	for _, c := range bound() {
		if c.Differs != "" {
			fmt.Fprintf(&b, "- %s: %s\n", c.Name, c.Differs)
		}
	}
	return b.String()
}

func (r *Results) calls() *figures.Table {
	t := &figures.Table{}
	head := []string{""}
	for _, n := range freeGoroutines {
		head = append(head, goroutines(n)+": ns a call", "ns an ID", "CPU ns an ID")
	}
	t.Row(append(head, "allocations")...)
	for _, c := range free() {
		row := []string{c.Name}
		for _, n := range freeGoroutines {
			for _, m := range []Metric{perCallNs, perIDNs, cpuNs} {
				row = append(row, r.figure(freeCase, c.Name, n, m, as("%.3g")))
			}
		}
		t.Row(append(row, r.figure(freeCase, c.Name, 1, func(s Sample) float64 { return float64(s.Mallocs) / float64(s.Calls) }, as("%.0f")))...)
	}
	return t
}

func (r *Results) inAdvance() *figures.Table {
	us := func(m Metric) Metric { return func(s Sample) float64 { return m(s) / 1e3 } }
	ms := func(m Metric) Metric { return func(s Sample) float64 { return m(s) / 1e6 } }
	t := &figures.Table{}
	t.Row("", "at the ceiling: IDs a second", "CPU ns an ID", "2 goroutines", "CPU ns an ID", "50,000 a second: p50 us", "p99 us", "age of an ID: p50 ms", "p99 ms", "65,536 at once: ms")
	for _, c := range append(advance()[:2:2], oneByOne()[1:]...) {
		t.Row(c.Name,
			r.figure(advanceCase, c.Name, 1, rate, figures.Thousands), r.figure(advanceCase, c.Name, 1, cpuNs, as("%.0f")),
			r.figure(advanceCase, c.Name, 2, rate, figures.Thousands), r.figure(advanceCase, c.Name, 2, cpuNs, as("%.0f")),
			r.figure(pacedCase, c.Name, 1, us(func(s Sample) float64 { return s.P50 }), as("%.2f")),
			r.figure(pacedCase, c.Name, 1, us(func(s Sample) float64 { return s.P99 }), as("%.2f")),
			r.figure(pacedCase, c.Name, 1, ms(func(s Sample) float64 { return s.AgeP50 }), as("%.1f")),
			r.figure(pacedCase, c.Name, 1, ms(func(s Sample) float64 { return s.AgeP99 }), as("%.1f")),
			r.figure(burstCase, c.Name, 1, func(s Sample) float64 { return 1e3 * s.Seconds }, as("%.2f")))
	}
	return t
}
