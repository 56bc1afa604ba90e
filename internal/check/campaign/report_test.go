package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// rows returns one row for each kind of fault, sorted by name: how often it came, whether the node
// had to serve, and how long the node took to serve again after it.
func (c *campaign) rows() [][]string {
	back, serves := map[string][]time.Duration{}, map[string]string{}
	for _, f := range c.faults {
		if f.healed == 0 {
			continue
		}
		key, to := f.kind.name, f.served
		if f.node < 0 {
			key, to = "ZooKeeper: "+key, f.well
		}
		back[key] = append(back[key], max(0, time.Duration(to-f.healed)))
		if serves[key] = "no"; f.kind.serves {
			serves[key] = "yes"
		}
	}
	rows := [][]string{{"fault", "times", "must serve", "back after it: median", "worst"}}
	for _, key := range slices.Sorted(maps.Keys(back)) {
		d := slices.Sorted(slices.Values(back[key]))
		rows = append(rows, []string{key, fmt.Sprint(len(d)), serves[key], short(d[(len(d)-1)/2]), short(d[len(d)-1])})
	}
	return rows
}

// text returns the report.
func (c *campaign) text(v *harness.Verdict, figures string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "flaked fault campaign: ZooKeeper %s%s, began %s, seed %d, %s, %d faults, %s\n\n",
		c.release, map[bool]string{true: " with TLS and digest"}[*chaosSecure], c.began.Format(time.DateTime), *chaosSeed, short(time.Duration(c.ended)), len(c.faults), v)
	for _, check := range harness.AllChecks {
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

// keep writes the report with the timeline to the directory of -chaos.report, where the nodes' logs are.
func (c *campaign) keep(text string) error {
	slices.SortFunc(c.events, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range c.events {
		text += fmt.Sprintf("\n%s  %-9s  %s", harness.Moment(e.at), e.who, e.text)
	}
	c.t.Logf("the report is in %s", c.dir)
	return os.WriteFile(filepath.Join(c.dir, "report.txt"), []byte(text+"\n"), 0o644)
}
