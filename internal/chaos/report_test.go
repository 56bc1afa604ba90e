package chaos

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/flaked/flaked/internal/testkit/judge"
)

// moment formats a time of the run as minutes and seconds, "mm:ss.000".
func moment(at int64) string {
	d := time.Duration(at)
	return fmt.Sprintf("%02d:%06.3f", int(d.Minutes()), math.Mod(d.Seconds(), 60))
}

func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func (m miss) String() string {
	return fmt.Sprintf("%d questions from %s to %s were not answered with IDs: %s", m.count, moment(m.first), moment(m.last), cmp.Or(m.text, m.why))
}

// line is a row of the table: the effect of one kind of fault.
type line struct {
	Kind           string
	Times          int
	Serves         bool
	Answered       int
	Missed         int // requests without IDs; the run fails if the node had to serve
	Gaps, Recovers []time.Duration
}

func (l *line) add(o outage) {
	l.Answered, l.Missed = l.Answered+o.answered, l.Missed+o.missed
	l.Gaps = append(l.Gaps, o.gap)
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

// table returns one line for each kind of fault, sorted by name.
func (c *campaign) table() (lines []line) {
	index := map[string]int{}
	for _, f := range c.faults {
		if f.healed == 0 {
			continue
		}
		key := f.kind.name
		if f.node < 0 {
			key = "ZooKeeper: " + key
		}
		i, ok := index[key]
		if !ok {
			i = len(lines)
			index[key] = i
			lines = append(lines, line{Kind: key, Serves: f.kind.serves})
		}
		l := &lines[i]
		l.Times++
		if f.node < 0 {
			l.Recovers = append(l.Recovers, time.Duration(f.well-f.healed))
			for _, load := range c.loads { // without nodes that had a fault meanwhile
				if !c.hadOwn(load.m.id, f) {
					l.add(cost(load.bins, f))
				}
			}
			continue
		}
		o := cost(c.loads[f.node].bins, f)
		l.add(o)
		l.Recovers = append(l.Recovers, o.recovery)
	}
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(strings.ToLower(a.Kind), strings.ToLower(b.Kind)) })
	return lines
}

// hadOwn reports whether a node had a fault that may stop it during a fault of ZooKeeper.
func (c *campaign) hadOwn(node int, of *fault) bool {
	return slices.ContainsFunc(c.faults, func(f *fault) bool {
		return f.node == node && f.impaired != 0 && f.injected <= of.well && (f.served == 0 || f.served >= of.injected)
	})
}

// text returns the report as text.
func (c *campaign) text(v *judge.Verdict, figures string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "flaked fault campaign: seed %d, %s, %d faults, %s\n\n", *seed, short(time.Duration(c.ended)), len(c.faults), v)
	for _, check := range judge.Checks {
		fmt.Fprintf(&b, "%-36s %d violations\n", check, v.Violations[check])
	}
	fmt.Fprintf(&b, "%-36s %d violations\n\n", "availability, and the rest", len(c.wrong)-len(v.Findings))
	for _, w := range c.wrong {
		fmt.Fprintf(&b, "WRONG  %s\n", w)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range c.rows() {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	fmt.Fprintf(&b, "\n%sIDs by worker: %v\n", figures, v.Workers)
	return b.String()
}

// rows returns the table as text, with its head.
func (c *campaign) rows() [][]string {
	rows := [][]string{{"fault", "times", "must serve", "answered", "not answered", "longest without an ID: median", "worst", "back after it: median", "worst"}}
	for _, l := range c.table() {
		serves := "no"
		if l.Serves {
			serves = "yes"
		}
		rows = append(rows, []string{l.Kind, fmt.Sprint(l.Times), serves, fmt.Sprint(l.Answered), fmt.Sprint(l.Missed),
			short(quantile(l.Gaps, .5)), short(quantile(l.Gaps, 1)), short(quantile(l.Recovers, .5)), short(quantile(l.Recovers, 1))})
	}
	return rows
}

// markdown returns two tables in the form of docs/faults.md: a column with the results of the
// run, and the effects of the faults.
func (c *campaign) markdown(v *judge.Verdict) string {
	var b strings.Builder
	count := func(checks ...judge.Check) string {
		n := int64(0)
		for _, check := range checks {
			n += v.Violations[check]
		}
		return fmt.Sprintf("%d violations", n)
	}
	latency := c.latency()
	first := [][]string{
		{"", fmt.Sprintf("seed %d, %d min", *seed, int(time.Duration(c.ended).Minutes()+.5))},
		{"faults", thousands(int64(len(c.faults)))},
		{"IDs answered", thousands(v.IDs)},
		{"workers", fmt.Sprint(len(v.Workers))},
		{"IDs twice", fmt.Sprint(v.Violations[judge.Unique])},
		{"order on connections, workers, nodes", count(judge.Connection, judge.Worker, judge.Node)},
		{"timestamps as the clocks were", count(judge.Times)},
		{"nothing where it must refuse", count(judge.Refusals)},
		{"availability, recovery, endings, ZooKeeper's records", fmt.Sprintf("%d violations", len(c.wrong)-len(v.Findings))},
		{"answers of nodes with no fault of their own: half, 99%, 99.9% within", fmt.Sprintf("%s, %s, %s", latency.quantile(.5), latency.quantile(.99), latency.quantile(.999))},
	}
	for _, table := range [][][]string{first, c.rows()} {
		for i, row := range table {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// thousands formats a number with commas between groups of three digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// keep writes the reports and the nodes' logs to the directory of -chaos.report. If the judge
// found violations, it also copies the recorded answers.
func (c *campaign) keep(v *judge.Verdict, text string) error {
	if err := os.MkdirAll(*report, 0o755); err != nil {
		return err
	}
	var lines strings.Builder
	slices.SortFunc(c.events, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range c.events {
		fmt.Fprintf(&lines, "%s  %-9s  %s\n", moment(e.at), e.who, e.text)
	}
	if err := os.WriteFile(filepath.Join(*report, "report.txt"), []byte(text+"\n"+c.markdown(v)+lines.String()), 0o644); err != nil {
		return err
	}
	page, err := os.Create(filepath.Join(*report, "report.html"))
	if err != nil {
		return err
	}
	defer page.Close()
	if err := c.html(page, text); err != nil {
		return err
	}
	kept := []string{}
	for i := range c.machines {
		kept = append(kept, fmt.Sprintf("n%d.log", i))
	}
	if !v.OK() {
		for _, l := range c.loads {
			for _, f := range l.files {
				kept = append(kept, filepath.Base(f))
			}
		}
	}
	for _, name := range kept {
		if err := copyFile(filepath.Join(*report, name), filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	c.t.Logf("the report is in %s", *report)
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// plot is the part of the chart for one node: its answers and its faults over time.
type plot struct {
	Name    string
	Y       int
	Columns []column
	Faults  []mark
	Latency string // points of a polyline
}

type column struct {
	X      int
	H      int // height of the part that was answered
	Served bool
	Colour string
}

type mark struct {
	X, W, Row int
	Label     string
}

const (
	plotWidth   = 1400
	stripHeight = 60
	stripGap    = 70
	refusing    = "#d9822b"
	unreachable = "#c23030"
)

// html writes the report as a page with a chart.
func (c *campaign) html(w io.Writer, text string) error {
	end := max(c.ended, 1)
	x := func(at int64) int { return int(at * plotWidth / end) }
	data := struct {
		Text, Title   string
		Width, Height int
		Plots         []plot
		ZooKeeper     []mark
		Ticks         []mark
		Events        []struct{ At, Who, Text string }
	}{Title: fmt.Sprintf("flaked fault campaign, seed %d", *seed), Text: text, Width: plotWidth + 80}
	for i, l := range c.loads {
		p := plot{Name: l.m.name(), Y: 40 + i*(stripHeight+stripGap)}
		var points strings.Builder
		for col := range plotWidth {
			from, to := int(int64(col)*end/plotWidth/binWidth), int((int64(col)+1)*end/plotWidth/binWidth)
			var sum bin
			for k := from; k < min(max(to, from+1), len(l.bins)); k++ {
				b := l.bins[k]
				sum.answered, sum.refused, sum.failed, sum.worst = sum.answered+b.answered, sum.refused+b.refused, sum.failed+b.failed, max(sum.worst, b.worst)
			}
			if sum.worst > 0 { // log scale: 0.1 ms at the bottom, 10 s at the top
				y := float64(stripHeight) * (1 - min(1, max(0, math.Log10(float64(sum.worst)/1e5)/5)))
				fmt.Fprintf(&points, "%d,%.1f ", col, y)
			}
			all := sum.answered + sum.refused + sum.failed
			if all == 0 { // no request ended: one may be waiting for its answer
				if n := len(p.Columns); n > 0 && p.Columns[n-1].Colour == unreachable && p.Columns[n-1].H == 0 {
					p.Columns = append(p.Columns, column{X: col, Colour: unreachable})
				}
				continue
			}
			colour := refusing
			if sum.failed > sum.refused {
				colour = unreachable
			}
			p.Columns = append(p.Columns, column{X: col, H: int(uint32(stripHeight) * sum.answered / all), Served: sum.answered == all, Colour: colour})
		}
		p.Latency = points.String()
		row := 0
		for _, f := range c.faults {
			if f.node == l.m.id {
				p.Faults = append(p.Faults, mark{x(f.injected), max(2, x(max(f.healed, f.injected))-x(f.injected)), row % 3, f.label()})
				row++
			}
		}
		data.Plots = append(data.Plots, p)
	}
	data.Height = 40 + len(c.loads)*(stripHeight+stripGap)
	for _, f := range c.faults {
		if f.node < 0 {
			data.ZooKeeper = append(data.ZooKeeper, mark{X: x(f.injected), W: max(1, x(max(f.healed, f.injected))-x(f.injected)), Label: f.label()})
		}
	}
	for i := int64(0); i <= 10; i++ {
		data.Ticks = append(data.Ticks, mark{X: int(i * plotWidth / 10), Label: moment(end * i / 10)})
	}
	for _, e := range c.events {
		data.Events = append(data.Events, struct{ At, Who, Text string }{moment(e.at), e.who, e.text})
	}
	return pageTemplate.Execute(w, data)
}

func (f *fault) label() string {
	return fmt.Sprintf("%s %s %s %s; healed %s, served %s", moment(f.injected), f.target(), f.kind.name, f.detail, moment(f.healed), moment(f.served))
}

func TestReportPage(t *testing.T) {
	c := &campaign{timeline: &timeline{}, ended: int64(10 * time.Second)}
	k := &kind{name: "kill -9 <now>"}
	c.faults = []*fault{{kind: k, injected: 1e9, healed: 2e9, served: 3e9}, {kind: k, node: -1, injected: 4e9, healed: 5e9, served: 5e9}}
	c.loads = []*clients{{m: &machine{}, bins: make([]bin, 1000)}}
	for i := range c.loads[0].bins {
		c.loads[0].bins[i] = bin{answered: 3, worst: 1e6}
	}
	var b strings.Builder
	if err := c.html(&b, "all & well"); err != nil {
		t.Fatal(err)
	}
	var d strings.Builder
	for _, n := range []int64{0, 999, 1000, 373813593} {
		d.WriteString(thousands(n) + " ")
	}
	if want := "0 999 1,000 373,813,593 "; d.String() != want {
		t.Errorf("%q, want %q", d.String(), want)
	}
	for _, want := range []string{"| IDs answered | 1,234 |", "| kill -9 <now> | 1 | no | ", "| ZooKeeper: kill -9 <now> | 1 | no |"} {
		if got := c.markdown(&judge.Verdict{IDs: 1234}); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, want := range []string{"all &amp; well", "kill -9 &lt;now&gt;", "<polyline", "node 0"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}
