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

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// twoWorkers is a layout with two workers, so that a node outside soon needs the worker of the machine.
const twoWorkers = "time=41@1ms,datacenter=9,worker=1,sequence=12"

// started starts a node on this host, and returns how long it took until it served. Its process is started again when
// it ends, because all workers are held: systemd would do so.
func started(n *harness.Node) time.Duration {
	t, began := n.Site.T, time.Now()
	t.Helper()
	n.Build = harness.Shipped
	if !harness.Within(3*time.Minute, func() bool {
		if n.Proc == nil || !n.Proc.Running() {
			n.Start()
		}
		return n.IsReady()
	}) {
		t.Fatalf("%s is not ready", n.Name)
	}
	return time.Since(began)
}

// TestMachineThatStandsStill stops a machine for longer than its lease. Meanwhile a node outside acquires the
// machine's worker. The machine goes on with the clock that it had, and without a worker. The node outside stops, but
// the machine acquires the worker only when chrony has set the clock: at once, or by a slow slew.
func TestMachineThatStandsStill(t *testing.T) {
	for name, row := range map[string]struct {
		setting string
		leaps   bool
	}{
		"step": {"makestep,0.1,-1", true},
		"slew": {"maxslewrate,100000", false},
	} {
		t.Run(name, func(t *testing.T) {
			kernelRoot(t)
			site := unchecked(t)
			flags := []string{"--layout", twoWorkers, "--lease", "15s", "--heartbeat", "1s", "--confirm-time", "4s"}
			site.Flags = append([]string{"--bootstrap", "--admin", "off"}, flags...)
			nodes := site.OnPorts(2)
			other, heir := nodes[0], nodes[1]
			started(other)
			m := newMachine(site, "ext4", "256M", flags...)
			numbers := m.served()
			worker := m.node.Worker()
			ends := []func(){load(m.node, numbers), load(other, numbers)}

			m.hypervisor("stop")
			began := time.Now()
			took := started(heir)
			if w := heir.Worker(); w != worker {
				t.Fatalf("the node outside has worker %d, the machine had %d", w, worker)
			}
			ends = append(ends, load(heir, numbers))
			m.hypervisor("cont")
			t.Logf("the machine stood still for %.0f s; a node outside had its worker after %.0f s",
				time.Since(began).Seconds(), took.Seconds())

			// Both workers are taken now, so the machine must not serve: it has lost its own.
			if !harness.Within(2*time.Minute, func() bool {
				_, err := m.node.Ask("READY")
				return err != nil && strings.HasPrefix(err.Error(), "-")
			}) {
				t.Fatal("the machine answers as if it had a worker")
			}
			heir.Stop() // when its lease has expired, only its clock keeps the machine from the worker
			m.regainsWorker(row.setting, row.leaps)
			harness.Pass(t.Context(), 10*time.Second)
			for _, end := range ends {
				end()
			}
			// The machine goes on below what the node outside has issued, until its next heartbeat: the order on a
			// worker holds by the holders' clocks only.
			if again := twice(site); again != (repeats{}) {
				t.Error(again)
			}
		})
	}
}

// regainsWorker has chrony set the machine's clock, and waits until the node serves again. It fails the test if a node
// could have served before, if the clock leaps unless leaps is set, or does not if it is, and if the node serves while
// its clock is further behind than a node tolerates.
func (m *machine) regainsWorker(setting string, leaps bool) {
	m.t.Helper()
	var before time.Duration
	if !harness.Within(time.Minute, func() (ok bool) { before, _, ok = m.behind(); return ok }) || before <= limits.ClocksAgree {
		m.t.Fatalf("the machine's clock is %s behind: it did not stand still", before)
	}
	m.does("chrony "+clock(m.t)+","+setting, "")
	began := time.Now()
	behind, atMost, looked, leapt := before, before, began, time.Duration(0)
	if !harness.Within(6*time.Minute, func() bool {
		ready, at := m.node.IsReady(), time.Now()
		if least, most, ok := m.behind(); ok {
			slewed := time.Since(looked) / 8 // at most
			leapt = max(leapt, behind-most-slewed)
			behind, atMost, looked = least, most, at
		}
		return ready
	}) {
		m.t.Fatalf("the node does not serve; its clock was %s behind, and is %s", before, behind)
	}
	if leapt > time.Second != leaps {
		m.t.Errorf("the clock has leapt by %s", leapt)
	}
	if behind > limits.ClocksAgree {
		m.t.Errorf("the node serves while its clock is %s behind", behind)
	}
	m.t.Logf("the clock was %.1f s behind; the node served after %.0f s, %.1f to %.1f s behind", before.Seconds(),
		time.Since(began).Seconds(), behind.Seconds(), atMost.Seconds())
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
// repeats IDs until it has reached ZooKeeper. Then its process ends, and the next one is a new node.
func TestSnapshotThatIsResumed(t *testing.T) {
	m, numbers := limited(t)
	end := load(m.node, numbers)
	before := m.node.Identity()
	m.hypervisor("savevm before")
	records, slot := m.node.Site.Records(), harness.SlotPath(before.Worker)
	written, _ := records.Read(slot, nil)
	if !harness.Within(time.Minute, func() bool { now, _ := records.Read(slot, nil); return now.Version > written.Version }) {
		t.Fatal("no heartbeat after the snapshot")
	}
	m.cut()
	end()

	m.boot("before")
	end = load(m.node, numbers)
	settles(t, []*machine{m}, end, func() bool {
		now, err := m.node.TryIdentity()
		return err == nil && now.UUID != before.UUID
	})
}

// TestCloneBesideTheOriginal shows limit 3 as it is: both machines issue the same IDs until one of them has found
// what the other has written. Then its process ends, and the next one is a new node.
func TestCloneBesideTheOriginal(t *testing.T) {
	m, numbers := limited(t)
	end := load(m.node, numbers)
	m.hypervisor("stop")
	m.hypervisor("savevm twin")
	twin := m.clone()
	m.hypervisor("cont")
	twin.boot("twin")
	endTwin := load(twin.node, numbers)
	settles(t, []*machine{m, twin}, func() { end(); endTwin() }, func() bool {
		a, err := m.node.TryIdentity()
		b, err2 := twin.node.TryIdentity()
		return err == nil && err2 == nil && a.UUID != b.UUID
	})
}

// limited returns a machine that serves, in a site where numbers may come twice: nothing checks its history.
func limited(t *testing.T) (*machine, harness.Sequence) {
	kernelRoot(t)
	m := newMachine(unchecked(t), "ext4", "256M")
	return m, m.served()
}

// unchecked returns a site that does not check its history at the end.
func unchecked(t *testing.T) *harness.Site {
	return &harness.Site{T: t, Connect: zktest.Three(t).Addr(), IDs: harness.NewHistory(), Values: harness.NewLedger()}
}

// repeats is what came again.
type repeats struct {
	ids    int64
	during time.Duration // from the first of these IDs to the last one
	values int
}

func (r repeats) String() string {
	return fmt.Sprintf("%d IDs in %.1f s, and %d values, came again", r.ids, r.during.Seconds(), r.values)
}

// twice returns what came again. The load must have ended.
func twice(site *harness.Site) repeats {
	v := site.IDs.Judge(harness.Rules{})
	return repeats{v.Again, time.Duration(v.AgainTo - v.AgainFrom), len(order.Twice(site.Values.All("")))}
}

// settles has chrony set the clocks of machines, and waits until all serve and settled is true. Then it ends the load,
// and logs what came twice. From now on nothing may: a site that checks asks the same nodes.
func settles(t *testing.T, machines []*machine, end func(), settled func() bool) {
	t.Helper()
	for _, m := range machines {
		m.does("chrony "+clock(t)+",makestep,0.1,-1", "")
	}
	began := time.Now()
	if !harness.Within(6*time.Minute, settled) {
		t.Fatal("both processes go on as one node")
	}
	took := time.Since(began)
	for _, m := range machines {
		m.ready()
	}
	end()
	loose := machines[0].node.Site
	t.Logf("a new node after %.1f s; %s", took.Seconds(), twice(loose))

	strict := harness.NewSite(t, loose.Connect)
	for _, m := range machines {
		n := strict.Node()
		n.Listen = m.node.Listen
		defer load(n, strict.Named(t, "order"))()
	}
	harness.Pass(t.Context(), 10*time.Second)
}
