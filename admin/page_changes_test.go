package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/clusterview"
)

// A node's death and return are events of every other node.
func TestChangesOfOtherNodesAreEvents(t *testing.T) {
	worker := func(n int, state, node string) clusterview.WorkerReport {
		return clusterview.WorkerReport{Worker: n, State: state, Node: node}
	}
	for _, row := range []struct {
		before, after []clusterview.WorkerReport
		want          string
	}{
		{[]clusterview.WorkerReport{worker(1, "live", "a")}, []clusterview.WorkerReport{worker(1, "live", "a")}, ""},
		{[]clusterview.WorkerReport{worker(1, "live", "a")}, []clusterview.WorkerReport{worker(1, "disconnected", "a")}, "warn 1 node is disconnected from ZooKeeper"},
		{[]clusterview.WorkerReport{worker(1, "disconnected", "a")}, []clusterview.WorkerReport{worker(1, "live", "a")}, "info 1 node is connected again"},
		{[]clusterview.WorkerReport{worker(1, "stopped", "a")}, []clusterview.WorkerReport{worker(1, "live", "a")}, "info 1 node is connected again"},
		{[]clusterview.WorkerReport{worker(1, "live", "a")}, []clusterview.WorkerReport{worker(1, "stopped", "a")}, "info 1 node stopped cleanly"},
		{[]clusterview.WorkerReport{worker(1, "live", "a")}, []clusterview.WorkerReport{worker(1, "live", "b")}, "info 1 node acquired a worker"},
		{nil, []clusterview.WorkerReport{worker(4, "live", "b")}, "info 4 node acquired a worker"},
		{nil, []clusterview.WorkerReport{worker(4, "free", "b")}, ""},
		{[]clusterview.WorkerReport{worker(1, "live", "a")}, []clusterview.WorkerReport{worker(1, "releasing", "")}, "info 1 worker was released"},
		{[]clusterview.WorkerReport{worker(1, "live", "a")}, []clusterview.WorkerReport{worker(1, "record-missing", "")}, "warn 1 ZooKeeper lost the record of a worker"},
		{[]clusterview.WorkerReport{worker(7, "live", "a")}, []clusterview.WorkerReport{worker(7, "disconnected", "a")}, ""}, // this process's
	} {
		var got []string
		for _, c := range changesOf(row.before, row.after, map[int]bool{7: true}) {
			got = append(got, fmt.Sprintf("%s %d %s", c.level, c.worker.Worker, c.message))
		}
		if s := strings.Join(got, "; "); s != row.want {
			t.Errorf("%+v, then %+v: %q, want %q", row.before, row.after, s, row.want)
		}
	}
}

// The scale shows some milliseconds as nearly flat, and an hour all the same.
func TestScaleOfClockOffsets(t *testing.T) {
	for _, row := range []struct {
		worst, ms, level float64
		ticks            string
	}{
		{0, 0, 0, "+600ms +300ms 0 -300ms -600ms"},
		{10, 10, 10.0 / 600, "+600ms +300ms 0 -300ms -600ms"},
		{600, -500, -500.0 / 600, "+600ms +300ms 0 -300ms -600ms"},
		{3_600_000, 3_600_000, 1, "+1h  +1min  +1s  +10ms  0  -10ms  -1s  -1min  -1h"},
	} {
		s := scaleFor(row.worst)
		if got := s.level(row.ms); got < row.level-1e-9 || got > row.level+1e-9 {
			t.Errorf("%vms on the scale for %vms: %v, want %v", row.ms, row.worst, got, row.level)
		}
		var ticks []string
		for i, m := range s.marks {
			ticks = append(ticks, m.word)
			if i > 0 && s.level(m.ms) >= s.level(s.marks[i-1].ms) {
				t.Errorf("marks of the scale for %vms are not in order", row.worst)
			}
		}
		if got := strings.Join(ticks, " "); got != row.ticks {
			t.Errorf("scale for %vms: %q, want %q", row.worst, got, row.ticks)
		}
	}
}

// A record may hold any text as the address of a page.
func TestPagesOfOtherNodes(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:7610": "http://10.0.0.1:7610/", "https://ids-1:7610": "https://ids-1:7610/", "[::1]:7610": "http://[::1]:7610/",
		"": "", "ids-1": "", "javascript:alert(1)//:1": "", "https://user@ids-1:7610": "", "ids-1:7610/x?y": "",
	} {
		if got := pageOf(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
	html := render("nodes", view{Nodes: []slotView{{WorkerReport: clusterview.WorkerReport{Worker: 3, Name: "ids-3"}, Page: "http://10.0.0.1:7610/"}}})
	if !strings.Contains(html, `<a href="http://10.0.0.1:7610/" rel="noreferrer">ids-3</a>`) {
		t.Error(html)
	}
}

// The nodes come first on the page. A map of mostly empty cells is folded, unless a reader asks for
// one of its workers. A development node says so.
func TestOrderOfThePage(t *testing.T) {
	html := render("page", wholePage{Dev: true})
	var at []int
	for _, id := range []string{`role="note"`, `id="first"`, `id="nodes"`, `id="node"`, `id="map"`, `id="clocks"`, `id="events"`} {
		at = append(at, strings.Index(html, id))
	}
	if !slices.IsSorted(at) || at[0] < 0 {
		t.Errorf("positions %v", at)
	}
	if strings.Contains(html, "<details open") || !strings.Contains(render("page", wholePage{MapOpen: true}), "<details open") {
		t.Error("the map is not folded")
	}
	if strings.Contains(render("page", wholePage{}), "Development mode") {
		t.Error("an ordinary node says that it is for development")
	}
	for slots, want := range map[int]bool{32: false, 128: false, 1024: true} {
		if got := sparse(clusterview.Summary{Slots: slots, Used: 3}); got != want {
			t.Errorf("3 of %d: %v", slots, got)
		}
	}
	if sparse(clusterview.Summary{Slots: 1024, Used: 300}) {
		t.Error("300 of 1024 workers are folded")
	}
}
