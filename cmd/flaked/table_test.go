package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/coordinator"
)

// The tables of status fit 80 and 120 columns. Less important columns go first, and what is wrong
// stays.
func TestTablesFitTheTerminal(t *testing.T) {
	var entries []coordinator.Entry
	for w := range 12 {
		entries = append(entries, liveEntry(w, 1200, func(e *coordinator.Entry) {
			e.Slot.Name, e.Slot.Address = fmt.Sprintf("ids-%d.europe-west", w), fmt.Sprintf("192.168.100.%d:7609", w+100)
			e.Slot.ReportedClock -= 3_600_000
		}))
	}
	r := judged("prod", exampleCluster(), entries, local(t0))
	r.Workers[3].Says = &clusterview.Answer{Phase: "refusing", Cause: "reserved-bound-reached"}
	r.Judge()
	nodes := clusterview.AssessNodes("ZooKeeper cannot be reached: refused", []clusterview.WorkerReport{parsed("zookeeper_ok false")}, local(t0))
	for _, columns := range []int{80, 120} {
		for name, page := range map[string]statusReport{"records": {Report: r}, "nodes": {Report: nodes}} {
			var b strings.Builder
			if err := page.print(&b, style{columns: columns}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String() + wrapped(degraded(page.Summary.Problems), "", columns)) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > columns {
					t.Errorf("%s at %d columns: a line of %d: %s", name, columns, n, line)
				}
			}
			for _, want := range []string{"WORKER", "NAME", "SAYS", "LEASE"} {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%s at %d columns: no column %s:\n%s", name, columns, want, b.String())
				}
			}
		}
	}
	var whole strings.Builder
	if err := (statusReport{Report: r}).print(&whole, style{}); err != nil || !strings.Contains(whole.String(), "VERSION") || !strings.Contains(whole.String(), "not ready: reserved-bound-reached") {
		t.Errorf("without a terminal:\n%s", whole.String())
	}
}

func TestFit(t *testing.T) {
	for _, row := range []struct {
		columns int
		want    string
	}{
		{0, "A  BBBB        C\n1  0123456789  z\n"},
		{16, "A  BBBB        C\n1  0123456789  z\n"},
		{15, "A  BBBB\n1  0123456789\n"},
		{12, "A  BBBB\n1  0123456..\n"},
		{2, "A  BBBB\n1  012345..\n"},
	} {
		table := textTable{}
		table.add("A", "BBBB", "C")
		table.add("1", "0123456789", "z")
		table.fit(row.columns, "X", "C")
		var b strings.Builder
		if err := table.print(&b, false); err != nil || b.String() != row.want {
			t.Errorf("%d columns: %q, want %q", row.columns, b.String(), row.want)
		}
	}
}
