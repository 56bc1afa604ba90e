package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A process holds four workers, each with a slot and a state directory of its own. The IDs of a
// burst come from several workers and increase. After kill -9 and after a clean stop it resumes
// all four.
func TestSeveralWorkers(t *testing.T) {
	t.Parallel()
	// The default reserve of 3 s is used. The bursts keep the machine busy, and a node that is
	// suspended for most of its reserve refuses.
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--workers", "4", "--reserve", "3s")
	n := s.started()
	all := func(n *node) (workers []int) {
		for i := range 4 {
			dir := n.dir
			if i > 0 {
				dir = filepath.Join(dir, fmt.Sprintf("worker-%d", i+1))
			}
			if _, err := os.Stat(dir); err != nil {
				return nil
			}
			part := *n
			part.dir = dir
			if rec := part.stored().Record; rec == nil || !rec.Confirmed {
				return nil
			} else {
				workers = append(workers, rec.Worker)
			}
		}
		return workers
	}
	serving := func(n *node) []int {
		n.until("four serve", func() bool { return n.stat("workers_ready") == "4" })
		var workers []int
		n.until("four are stored", func() bool { workers = all(n); return workers != nil })
		return workers
	}
	first := serving(n)
	if got := slices.Compact(slices.Sorted(slices.Values(first))); len(got) != 4 {
		t.Fatalf("workers %v", first)
	}
	seen := map[int64]bool{}
	burst := func() {
		c, err := n.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		for range 20 {
			ids, err := c.get(10_000)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				seen[s.ids.worker(id)] = true
			}
		}
	}
	burst()
	if len(seen) < 2 {
		t.Errorf("a burst of 10,000 at a time is of workers %v, where %v are held", seen, first)
	}
	records := s.records()
	process := records.slot(first[0]).Process
	for _, w := range first {
		if slot := records.slot(w); slot.Process == "" || slot.Process != process {
			t.Errorf("worker %d: %+v; want that of one process", w, slot)
		}
	}
	n.kill()
	n.start()
	if again := serving(n); !slices.Equal(again, first) {
		t.Errorf("workers %v after a kill, %v before", again, first)
	}
	burst()
	n.stop()
	n.start()
	if again := serving(n); !slices.Equal(again, first) {
		t.Errorf("workers %v after a stop, %v before", again, first)
	}
	burst()
}
