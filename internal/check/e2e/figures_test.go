package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// The tests in this file measure the figures that the project promises, on the shipped binary.
// They run while no other test of this package does, and log the figures. Their limits are several
// times the promised figures, because a machine that builds and tests is busy.

// firstID starts the node and returns the time until a client has received its first ID.
func (n *node) firstID() time.Duration {
	t := n.site.t
	t.Helper()
	began := time.Now()
	n.start()
	look := time.NewTicker(500 * time.Microsecond)
	defer look.Stop()
	for {
		if time.Since(began) > patience || !n.proc.running() {
			t.Fatalf("%s: no ID within %s", n.name, time.Since(began))
		}
		<-look.C
		c, err := n.dial()
		if err != nil {
			continue
		}
		_, err = c.get(1)
		took := time.Since(began)
		c.close()
		if err == nil {
			return took
		}
	}
}

func report(t *testing.T, what string, runs []time.Duration, limit time.Duration) {
	t.Helper()
	slices.Sort(runs)
	median := runs[len(runs)/2]
	t.Logf("%s: median %s of %d runs, %s to %s", what, median.Round(time.Millisecond/10), len(runs), runs[0].Round(time.Millisecond/10), runs[len(runs)-1].Round(time.Millisecond/10))
	if median > limit {
		t.Errorf("%s: %s, which is far from what is promised", what, median)
	}
}

// This test is not parallel, because other tests would slow down what it measures.
func TestFigures(t *testing.T) {
	const runs = 7
	t.Run("resume after a clean stop, one ZooKeeper", func(t *testing.T) {
		s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
		s.figuresOfResume(runs)
	})
	t.Run("fresh development cluster", func(t *testing.T) {
		var times []time.Duration
		for range runs {
			// `make run` uses these times.
			s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--heartbeat", "200ms", "--confirm-time", "800ms")
			n := s.node().onSocket()
			times = append(times, n.firstID())
			n.stop()
		}
		report(t, "first ID of a fresh cluster that confirms in 800ms", times, 5*time.Second)
	})
	t.Run("ensemble", func(t *testing.T) {
		zk := zktest.Three(t)
		s := newSite(t, zk.Addr(), "--heartbeat", "50ms", "--confirm-time", "450ms")
		first := s.started().ready()
		first.get(1)
		// A new node need not wait for the confirming time once the first one can vouch.
		records := s.records()
		first.until("it has run for the confirming time", func() bool { return records.slot(first.worker()).UnbrokenMs >= 450 })
		var times []time.Duration
		for range runs {
			n := s.node().onSocket()
			times = append(times, n.firstID())
			n.stop()
		}
		report(t, "first ID of a newcomer to a confirmed ensemble of three", times, 2*time.Second)
		s.figuresOfResume(runs)
	})
}

func (s *site) figuresOfResume(runs int) {
	t := s.t.(*testing.T)
	t.Helper()
	n := s.node().onSocket()
	n.start().ready()
	var times []time.Duration
	for range runs {
		n.get(1)
		n.stop()
		times = append(times, n.firstID())
		n.until("a confirmed record", func() bool { return n.stat("confirmed") == "true" })
	}
	report(t, "first ID of a resume after a clean stop", times, 2*time.Second)
	rss := residentKiB(n.proc.cmd.Process.Pid)
	t.Logf("resident memory of an idle node: %.1f MiB", float64(rss)/1024)
	if rss > 50<<10 {
		t.Errorf("an idle node takes %d KiB, and 25 MiB are promised", rss)
	}
}
