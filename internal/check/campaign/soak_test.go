package campaign

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
)

// A soak is a campaign that shows what only time shows: its nodes have long leases, their clocks drift, faults come one
// at a time, and what the nodes use is measured. The last machine gets only faults that its process survives, so that
// one process lives as long as the run. ZooKeeper loses no data: registration would be frozen for as long as a lease.
func soaks() bool { return *chaosSoak > 0 }

const (
	// unhurried divides the pace of clients in a soak, because all answers stay in memory until the end.
	unhurried = 5
	// driftRate is the part of true time that a clock of a soak gains or loses. It turns at driftMost, because nodes do
	// not believe in clocks that differ by agreed.
	driftRate, driftMost = 200e-6, 2 * time.Second
)

// pace returns the time between two requests of a client.
func pace(usual time.Duration) time.Duration {
	if soaks() {
		return unhurried * usual
	}
	return usual
}

// turn blocks for d, and in a soak until the next fault is due. Those who wait take turns.
func (c *campaign) turn(ctx context.Context, d time.Duration) {
	harness.Pass(ctx, d)
	if !soaks() {
		return
	}
	select {
	case <-c.turns:
	case <-ctx.Done():
	}
}

// callTurns lets one fault begin at each interval of a soak, until ctx ends.
func (c *campaign) callTurns(ctx context.Context) {
	tick := time.NewTicker(*chaosSoak)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case c.turns <- struct{}{}:
		case <-ctx.Done():
		}
	}
}

// drifted returns how far a clock that drifts is from where it began: it gains until driftMost, then loses until it is
// as far behind, and so on.
func drifted(elapsed time.Duration) time.Duration {
	at := math.Mod(float64(elapsed)*driftRate, 4*float64(driftMost))
	switch most := float64(driftMost); {
	case at > 3*most:
		at -= 4 * most
	case at > most:
		at = 2*most - at
	}
	return time.Duration(at)
}

// drift lets the clocks of the machines drift until the run is over, every second one back.
func (c *campaign) drift() {
	began, before := c.now(), time.Duration(0)
	c.every(100*time.Millisecond, func() {
		now := drifted(time.Duration(c.now() - began))
		for i, m := range c.machines {
			m.drift((now - before) * time.Duration(1-i%2*2))
		}
		before = now
	})
}

// usage has the amounts that a node uses at a moment, in the order of resources. Sizes are in KiB.
type usage [4]int64

// resource is something that a node uses.
type resource struct {
	name, metric string // metric: "" for the size of the state directory
	unit         int64
	slack        int64 // more than this is growth, beside a tenth
}

var resources = [len(usage{})]resource{
	{"memory, KiB", "process_resident_memory_bytes", 1024, 16 << 10},
	{"descriptors", "process_open_fds", 1, 8},
	{"goroutines", "go_goroutines", 1, 8},
	// Each file of sequences grows until it is twice as long as its content and 64 KiB.
	{"state directory, KiB", "", 1024, 512},
}

// measures asks the machines what they use every ten seconds, until the run is over.
func (c *campaign) measures() {
	c.every(10*time.Second, func() {
		for _, m := range c.machines {
			if u, err := m.uses(); err == nil { // a node that is down uses nothing
				m.used = append(m.used, u)
			}
		}
	})
}

func (m *machine) uses() (u usage, err error) {
	client := http.Client{Timeout: clientTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Get("http://" + m.admin() + "/metrics")
	if err != nil {
		return u, err
	}
	defer reply.Body.Close()
	found := 0
	for in := bufio.NewScanner(reply.Body); in.Scan(); {
		var value float64
		for i, r := range resources {
			if text, ok := strings.CutPrefix(in.Text(), r.metric+" "); ok && r.metric != "" {
				if _, err := fmt.Sscan(text, &value); err != nil {
					return u, err
				}
				u[i] = int64(value) / r.unit
				found++
			}
		}
	}
	if found != len(resources)-1 {
		return u, fmt.Errorf("%s says %d figures", m.Name, found)
	}
	var size int64
	err = filepath.WalkDir(m.Dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	u[len(u)-1] = size / resources[len(u)-1].unit
	return u, err
}

// median returns the middle one of figures, which must not be none.
func median(figures []int64) int64 {
	return slices.Sorted(slices.Values(figures))[len(figures)/2]
}

// grows reports whether figures, in the order of time, grow without bound: the median of the last third is more than a
// tenth, and slack, above that of the middle third. The first third is for a process to warm up in. A few figures say
// nothing.
func grows(figures []int64, slack int64) bool {
	third := len(figures) / 3
	if third < 10 {
		return false
	}
	middle, last := median(figures[third:2*third]), median(figures[2*third:])
	return last > middle+middle/10+slack
}

// growth records a finding for each resource that grows, and returns a table: at the start, at the end, the most. Start
// and end are medians of a minute.
func (c *campaign) growth() string {
	if !soaks() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "one fault every %s, leases of up to %s, clocks that drift by %.0f ppm\n", *chaosSoak, *chaosLease, driftRate*1e6)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "node\tprocesses\tlease at the end")
	for _, r := range resources {
		fmt.Fprintf(w, "\t%s: start\tend\tmost", r.name)
	}
	fmt.Fprintln(w)
	for _, m := range c.machines {
		fmt.Fprintf(w, "%s\t%d\t%s", m.Name, m.starts, m.lease.Round(time.Second))
		if len(m.used) == 0 {
			c.wrong = append(c.wrong, m.Name+": nothing says what it uses")
			m.used = []usage{{}}
		}
		for i, r := range resources {
			var figures []int64
			for _, u := range m.used {
				figures = append(figures, u[i])
			}
			if grows(figures, r.slack) {
				c.wrong = append(c.wrong, fmt.Sprintf("%s: %s grows: %v", m.Name, r.name, figures))
			}
			minute := min(6, len(figures))
			fmt.Fprintf(w, "\t%d\t%d\t%d", median(figures[:minute]), median(figures[len(figures)-minute:]), slices.Max(figures))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.String() + "\n"
}

func TestGrowth(t *testing.T) {
	line := func(from, step int64) (figures []int64) {
		for i := range int64(90) {
			figures = append(figures, from+i*step)
		}
		return figures
	}
	saw := line(0, 1)
	for i := range saw {
		saw[i] %= 10
	}
	for name, row := range map[string]struct {
		figures []int64
		want    bool
	}{
		"none":            {nil, false},
		"steady":          {line(100, 0), false},
		"falls":           {line(1000, -5), false},
		"rises":           {line(100, 1), true},
		"a few":           {line(100, 100)[:29], false},
		"rises slowly":    {line(1000, 1), false}, // by 30 in a third: within a tenth
		"warms up":        {slices.Concat(line(0, 5)[:30], line(150, 0)[:60]), false},
		"grows and drops": {saw, false},
		"one that is far": {slices.Concat(line(100, 0)[:80], []int64{9000}, line(100, 0)[:9]), false},
	} {
		if got := grows(row.figures, 8); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestClocksTurn(t *testing.T) {
	quarter := time.Duration(float64(driftMost) / driftRate)
	for elapsed, want := range map[time.Duration]time.Duration{
		0: 0, time.Second: 200 * time.Microsecond, quarter: driftMost, 2 * quarter: 0, 3 * quarter: -driftMost,
		3*quarter + quarter/2: -driftMost / 2, 4 * quarter: 0, 5 * quarter: driftMost,
	} {
		if got := drifted(elapsed); (got - want).Abs() > time.Microsecond {
			t.Errorf("after %s: %s, want %s", elapsed, got, want)
		}
	}
}
