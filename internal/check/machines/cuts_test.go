//go:build linux

package machines

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

var (
	cuts = flag.Int("cuts", 10, "power cuts on each file system")
	seed = flag.Uint64("seed", 1, "of the moments of power cuts")
)

// TestPowerCuts cuts the power at random moments under load, also of many sequences. Every second start finds no
// ZooKeeper. The site checks at the end that no ID and no value came twice, and that IDs after a cut are above those
// before.
func TestPowerCuts(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs"} {
		t.Run(fs, func(t *testing.T) {
			kernelRoot(t)
			random := rand.New(rand.NewPCG(*seed, uint64(len(fs))))
			zk := zktest.Three(t)
			m := newMachine(harness.NewSite(t, zk.Addr()), fs, "512M")
			order, names := m.served(), manyAt(m)
			worker := m.node.Worker()
			for cut := range *cuts {
				end, endNames := load(m.node, order), names.load()
				away := cut%2 == 1
				if away {
					m.untilLease(startLimit)
				}
				harness.Pass(t.Context(), time.Duration(random.IntN(5000))*time.Millisecond)
				m.cut()
				end()
				endNames()
				if away {
					for i := range zk.Addrs() {
						zk.Kill(i)
					}
				}
				m.boot("")
				took := m.ready()
				if w := m.node.Worker(); w != worker {
					t.Fatalf("worker %d after the cut, %d before", w, worker)
				}
				m.node.Get(1) // the site compares it with those before
				gap := names.goOn()
				t.Logf("cut %d: ready after %.1f s, ZooKeeper away: %t; gaps of up to %d values", cut, took.Seconds(), away, gap)
				if gap > manyGap {
					t.Errorf("a gap of %d values", gap)
				}
				if away {
					for i := range zk.Addrs() {
						zk.Start(i)
					}
					zk.WaitServing(t)
				}
			}
			site := m.node.Site
			t.Logf("%s; %d values", site.IDs.Judge(harness.Rules{}), len(site.Values.All("")))
		})
	}
}

// TestPowerCutOfAFullDisk cuts the power of a machine whose disk is full, while clients ask.
func TestPowerCutOfAFullDisk(t *testing.T) {
	kernelRoot(t)
	m := newMachine(harness.NewSite(t, zktest.Three(t).Addr()), "ext4", "32M")
	end := load(m.node, m.served())
	m.does("fill", "INIT: filled")
	harness.Pass(t.Context(), 5*time.Second)
	m.cut()
	end()
	m.boot("")
	// It may end because the disk is full, and is started again until there is space.
	if !harness.Within(startLimit, func() bool {
		_, err := m.node.Ask("READY")
		return err == nil || strings.Contains(m.log(), "INIT: flaked ended")
	}) {
		t.Fatal("the node neither answers nor ends")
	}
	reply, err := m.node.Ask("READY")
	t.Logf("with the full disk: %q, %v", reply, err)
	m.does("free", "INIT: freed")
	m.ready()
	m.node.Get(1) // the site compares it with those before
}

// untilLease waits until the node in the machine has a lease that outlasts a start without ZooKeeper.
func (m *machine) untilLease(want time.Duration) {
	m.t.Helper()
	if !harness.Within(2*want, func() bool {
		left, err := strconv.ParseInt(m.node.Stat("lease_left_ms"), 10, 64)
		return err == nil && left >= want.Milliseconds()
	}) {
		m.t.Fatalf("no lease of %s", want)
	}
}
