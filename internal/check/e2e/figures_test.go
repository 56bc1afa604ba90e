package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// firstID starts the node and returns the time until a client has received its first ID.
func (n *node) firstID() time.Duration {
	began := time.Now()
	c := &client{node: n.start(), timeout: callTimeout}
	defer c.close()
	n.until("the first ID", func() bool { _, err := c.get(1); return err == nil })
	return time.Since(began)
}

// TestFigures measures figures that the project promises, on the shipped binary, and logs them. The limits are several
// times the promised figures, because a machine that builds and tests is busy. This test is not parallel, because
// other tests would slow down what it measures.
func TestFigures(t *testing.T) {
	s := newSite(t, zktest.Three(t).Addr(), "--heartbeat", "50ms", "--confirm-time", "450ms")
	var resumed, joined []time.Duration
	median := func(what string, runs []time.Duration) {
		slices.Sort(runs)
		t.Logf("first ID of %s: %s", what, runs)
		if runs[len(runs)/2] > 2*time.Second {
			t.Errorf("first ID of %s: %s, which is far from what is promised", what, runs[len(runs)/2])
		}
	}
	node := func() *node {
		n := s.node().onSocket()
		n.build = shipped
		return n
	}
	first := node().start().ready()
	for range 3 {
		n := node()
		joined = append(joined, n.firstID())
		n.until("a confirmed record", func() bool { return n.stat("confirmed") == "true" })
		n.stop()
		resumed = append(resumed, n.firstID())
		n.stop()
	}
	median("a new node, ensemble of three", joined)
	median("a resume after a clean stop", resumed)
	process, err := procfs.NewProc(first.proc.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := process.Stat(); err != nil || stat.ResidentMemory() > 50<<20 {
		t.Errorf("an idle node takes %d bytes, and 25 MiB are promised: %v", stat.ResidentMemory(), err)
	}
}
