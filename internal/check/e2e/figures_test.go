package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"slices"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// firstID starts the node and returns the time until a client has received its first ID.
func firstID(n *harness.Node) time.Duration {
	began := time.Now()
	c := &harness.Client{Node: n.Start(), Timeout: harness.CallTimeout}
	defer c.Close()
	n.Until("the first ID", func() bool { _, err := c.Get(1); return err == nil })
	return time.Since(began)
}

// TestFigures measures figures that the project promises, on the shipped binary, and logs them. The limits are several
// times the promised figures, because a machine that builds and tests is busy. This test is not parallel, because
// other tests would slow down what it measures.
func TestFigures(t *testing.T) {
	s := harness.NewSite(t, zktest.Three(t).Addr(), "--heartbeat", "50ms", "--confirm-time", "450ms")
	var resumed, joined []time.Duration
	median := func(what string, runs []time.Duration) {
		slices.Sort(runs)
		t.Logf("first ID of %s: %s", what, runs)
		if runs[len(runs)/2] > 2*time.Second {
			t.Errorf("first ID of %s: %s, which is far from what is promised", what, runs[len(runs)/2])
		}
	}
	node := func() *harness.Node {
		n := s.Node().OnSocket()
		n.Build = harness.Shipped
		return n
	}
	first := node().Start().Ready()
	for range 3 {
		n := node()
		joined = append(joined, firstID(n))
		n.Until("a confirmed record", func() bool { return n.Stat("confirmed") == "true" })
		n.Stop()
		resumed = append(resumed, firstID(n))
		n.Stop()
	}
	median("a new node, ensemble of three", joined)
	median("a resume after a clean stop", resumed)
	process, err := procfs.NewProc(first.Proc.Cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := process.Stat(); err != nil || stat.ResidentMemory() > 50<<20 {
		t.Errorf("an idle node takes %d bytes, and 25 MiB are promised: %v", stat.ResidentMemory(), err)
	}
}
