//go:build linux

package machines

import (
	"flag"
	"math/rand/v2"
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

// TestPowerCuts cuts the power at random moments under load. Every second start finds no ZooKeeper.
func TestPowerCuts(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs"} {
		t.Run(fs, func(t *testing.T) {
			kernelRoot(t)
			random := rand.New(rand.NewPCG(*seed, uint64(len(fs))))
			zk := zktest.Single(t)
			m := newMachine(t, zk, fs, "512M")
			m.boot("")
			m.ready()
			sequence(t, zk)
			worker, got := workerOf(t, m.addr()), newKept()
			for cut := range *cuts {
				end := got.from(m.addr())
				got.waitFor(t, 1000)
				away := cut%2 == 1
				if away {
					untilLease(t, m.addr(), 2*time.Minute)
				}
				harness.Pass(t.Context(), time.Duration(random.IntN(5000))*time.Millisecond)
				m.cut()
				end()
				before := got.highestID()
				if away {
					zk.Kill(0)
				}
				m.boot("")
				took := m.ready()
				if w := workerOf(t, m.addr()); w != worker {
					t.Fatalf("worker %d after the cut, %d before", w, worker)
				}
				first := got.one(t, m.addr())
				if first <= before {
					t.Fatalf("the first ID after the cut is %d, the last before was %d", first, before)
				}
				t.Logf("cut %d: ready after %.1f s, ZooKeeper away: %t; %s", cut, took.Seconds(), away, got)
				if away {
					zk.Start(0)
					zk.WaitServing(t)
				}
			}
			got.wantsNoneTwice(t)
		})
	}
}

// TestPowerCutOfAFullDisk cuts the power of a machine whose disk is full, while clients ask.
func TestPowerCutOfAFullDisk(t *testing.T) {
	kernelRoot(t)
	zk := zktest.Single(t)
	m := newMachine(t, zk, "ext4", "32M")
	m.boot("")
	m.ready()
	sequence(t, zk)
	got := newKept()
	end := got.from(m.addr())
	got.waitFor(t, 1000)
	m.does("fill", "INIT: filled")
	harness.Pass(t.Context(), 5*time.Second)
	m.cut()
	end()
	before := got.highestID()
	m.boot("")
	// It may end because the disk is full, and is started again until there is space.
	if !harness.Within(4*time.Minute, func() bool {
		_, err := ask(m.addr(), "READY")
		return err == nil || strings.Contains(m.said(), "INIT: flaked ended")
	}) {
		t.Fatal("the node neither answers nor ends")
	}
	reply, err := ask(m.addr(), "READY")
	t.Logf("with the full disk: %q, %v", reply, err)
	m.does("free", "INIT: freed")
	m.ready()
	if first := got.one(t, m.addr()); first <= before {
		t.Fatalf("the first ID after the cut is %d, the last before was %d", first, before)
	}
	got.wantsNoneTwice(t)
	t.Log(got)
}
