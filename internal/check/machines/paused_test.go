//go:build linux

package machines

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// twoWorkers is a layout with two workers, so that a node outside soon needs the worker of the machine.
const twoWorkers = "time=41@1ms,datacenter=9,worker=1,sequence=12"

// outside starts a node on this host, and returns its address and how long it took until it served. Its process is
// started again when it ends, because all workers are held: systemd would do so.
func outside(t testing.TB, zk *zktest.Ensemble, name string, flags ...string) (addr string, took time.Duration) {
	t.Helper()
	addr = fmt.Sprintf("127.0.0.1:%d", zktest.Port(t))
	dir, began := t.TempDir(), time.Now()
	args := append([]string{
		"serve", "--zk", zk.Addr(), "--bootstrap", "--listen", addr, "--admin", "off", "--name", name,
		"--state-dir", filepath.Join(dir, "state"),
	}, flags...)
	var p *harness.Process
	if !harness.Within(3*time.Minute, func() bool {
		if p == nil || !p.Running() {
			var err error
			p, err = harness.Spawn(t, nil, name, filepath.Join(dir, "log"), nil, exec.Command(harness.Shipped.Binary(t), args...))
			must(t, err)
		}
		reply, err := ask(addr, "READY")
		return err == nil && reply == "OK"
	}) {
		t.Fatalf("%s is not ready: %s", name, harness.LastLines(p.Log(), 3))
	}
	return addr, time.Since(began)
}

// TestMachineThatStandsStill stops a machine for longer than its lease. Meanwhile a node outside acquires the
// machine's worker. The machine goes on with the clock that it had. Then chrony sets that clock: at once, or slowly.
func TestMachineThatStandsStill(t *testing.T) {
	for name, setting := range map[string]string{"step": "makestep,0.1,-1", "slew": "maxslewrate,100000"} {
		t.Run(name, func(t *testing.T) {
			kernelRoot(t)
			zk, got := zktest.Single(t), newKept()
			flags := []string{"--layout", twoWorkers, "--lease", "20s", "--heartbeat", "1s", "--confirm-time", "4s"}
			other, _ := outside(t, zk, "other", flags...)
			m := newMachine(t, zk, "ext4", "256M", flags...)
			m.boot("")
			m.ready()
			sequence(t, zk)
			worker := workerOf(t, m.addr())
			defer got.from(m.addr())()
			defer got.from(other)()
			got.waitFor(t, 1000)

			m.hypervisor("stop")
			began := time.Now()
			heir, took := outside(t, zk, "heir", flags...)
			defer got.from(heir)()
			if w := workerOf(t, heir); w != worker {
				t.Fatalf("the node outside has worker %d, the machine had %d", w, worker)
			}
			got.waitFor(t, 1000)
			m.hypervisor("cont")
			stood := time.Since(began)
			t.Logf("the machine stood still for %.0f s; a node outside had its worker after %.0f s", stood.Seconds(), took.Seconds())

			// Both workers are taken now, so the machine must not serve: it has lost its own.
			if !harness.Within(2*time.Minute, func() bool { r, err := ask(m.addr(), "READY"); return err == nil && strings.HasPrefix(r, "-") }) {
				t.Fatal("the machine answers as if it had a worker")
			}
			m.does("chrony "+clock(t)+","+setting, "")
			if name == "step" && !harness.Within(2*time.Minute, func() bool { s, err := statusOf(m.addr()); return err == nil && s.Node.Clock.Offset > -1000 }) {
				s, err := statusOf(m.addr())
				t.Fatalf("chrony has not set the clock: %+v, %v", s, err)
			}
			harness.Pass(t.Context(), 5*time.Second)
			got.wantsNoneTwice(t)
			t.Log(got)
		})
	}
}

// clock starts a server of chrony on this host, which does not set the clock here, and returns its port.
func clock(t testing.TB) string {
	t.Helper()
	port, dir := zktest.Port(t), t.TempDir()
	conf := fmt.Sprintf("user root\nlocal stratum 2\nport %d\nbindaddress 127.0.0.1\nallow 127.0.0.1\ncmdport 0\nbindcmdaddress /\npidfile %s/pid\n", port, dir)
	file := filepath.Join(dir, "conf")
	must(t, os.WriteFile(file, []byte(conf), 0o644))
	p, err := harness.Spawn(t, nil, "chronyd", filepath.Join(dir, "log"), nil, exec.Command(program(t, "chronyd"), "-x", "-d", "-f", file))
	must(t, err)
	t.Cleanup(p.Kill)
	return fmt.Sprint(port)
}

// TestSnapshotThatIsResumed shows limit 4 of docs/safety.md as it is: a machine goes on from an older snapshot. It
// repeats IDs until it has reached ZooKeeper, and not after. Its clock is the snapshot's until chrony sets it.
func TestSnapshotThatIsResumed(t *testing.T) {
	kernelRoot(t)
	zk, got := zktest.Single(t), newKept()
	m := newMachine(t, zk, "ext4", "256M")
	m.boot("")
	m.ready()
	sequence(t, zk)
	end := got.from(m.addr())
	got.waitFor(t, 1000)
	m.hypervisor("savevm before")
	got.waitFor(t, 1000)
	m.cut()
	end()
	t.Logf("before: %s", got)

	m.boot("before")
	defer got.from(m.addr())()
	m.does("chrony "+clock(t)+",makestep,0.1,-1", "")
	settled(t, "the resumed machine", got, m)
}

// TestCloneBesideTheOriginal shows limit 3 as it is: both machines issue the same IDs until one of them has lost
// its worker to the other.
func TestCloneBesideTheOriginal(t *testing.T) {
	kernelRoot(t)
	zk, got := zktest.Single(t), newKept()
	m := newMachine(t, zk, "ext4", "256M")
	m.boot("")
	m.ready()
	sequence(t, zk)
	end := got.from(m.addr())
	got.waitFor(t, 1000)
	m.hypervisor("stop")
	m.hypervisor("savevm twin")
	twin := m.clone()
	m.hypervisor("cont")
	twin.boot("twin")
	defer end()
	defer got.from(twin.addr())()
	for _, machine := range []*machine{m, twin} {
		machine.does("chrony "+clock(t)+",makestep,0.1,-1", "")
	}
	settled(t, "the clone", got, m, twin)
	a, b := workerOf(t, m.addr()), workerOf(t, twin.addr())
	if a == b {
		t.Errorf("both machines have worker %d", a)
	}
}

// settled waits until no ID has come twice for a while, although every machine serves. It logs how many came twice,
// and for how long.
func settled(t testing.TB, who string, got *kept, machines ...*machine) {
	t.Helper()
	began := time.Now()
	last, since := 0, began
	if !harness.Within(6*time.Minute, func() bool {
		for _, m := range machines {
			if r, err := ask(m.addr(), "READY"); err != nil || r != "OK" {
				since = time.Now()
				return false
			}
		}
		if _, _, twice := got.count(); twice != last {
			last, since = twice, time.Now()
		}
		return time.Since(since) > 20*time.Second
	}) {
		t.Fatalf("IDs come twice without end: %s", got)
	}
	t.Logf("%s: %s; the last came again %.1f s after it went on", who, got, since.Sub(began).Seconds())
}
