package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// These tests replay attacks V1 to V6, by which an earlier version issued IDs twice. The section
// "What was found" of docs/faults.md describes most of them, without these labels. The history of
// each test is checked at its end.

// made creates the site's cluster with `flaked cluster init`, and removes --bootstrap from the
// flags of the nodes.
func (s *site) made(flags ...string) *site {
	s.t.Helper()
	s.flags = without(s.flags, "--bootstrap")
	s.command(append([]string{"cluster", "init"}, flags...)...).wants(s.t, 0, "created cluster default: ")
	return s
}

// V1: ZooKeeper's data are restored from a copy without the holder's record. The holder notices
// before a new node may issue on its worker, whatever its session timeout is.
func TestHolderNoticesALossWhateverItsSessionTimeoutIs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		confirm string
		times   int
		flags   []string
	}{
		"long session":     {"4s", 1, []string{"--zk-session-timeout", "30s"}},
		"short confirming": {"2s", 1, []string{"--zk-session-timeout", "6s"}},
		"restored twice":   {"3s", 2, []string{"--zk-session-timeout", "20s"}},
		"fast heartbeats":  {"3s", 1, []string{"--zk-session-timeout", "30s", "--heartbeat", "100ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zk := zktest.Single(t)
			s := newSite(t, zk.Addr(), append([]string{"--heartbeat", "500ms", "--confirm-time", row.confirm, "--reserve", "3s"}, row.flags...)...).made("--confirm-time", row.confirm)
			copied := zk.Snapshot(t)
			holder := s.started().ready()
			id := holder.identity()
			load := holder.clients(2)
			for range row.times {
				zk.Restore(t, copied)
				newcomer := s.started()
				newcomer.fails(1, `registration is frozen until`)
				holder.until("its record is back", func() bool { return s.records().slot(id.worker).Node == id.uuid })
			}
			load.progress()
			load.flawless()
		})
	}
}

// V1: settings with which a holder could notice a loss too late are refused, with the reason.
func TestHeartbeatTooSlowToNoticeIsRefused(t *testing.T) {
	t.Parallel()
	connect := zktest.Chroot(t, zktest.Shared(t))
	s := newSite(t, connect)
	s.flags = without(s.flags, "--bootstrap")
	s.command("cluster", "init", "--confirm-time", "400ms").wants(t, 2, "the confirming time 400ms is out of range. Use 410ms to 1h")
	s.command("cluster", "init", "--confirm-time", "0s").wants(t, 2, "--confirm-time must be at least 410ms, not 0s. In a shorter confirming time a holder cannot notice that ZooKeeper lost data")
	s.command("cluster", "init", "--confirm-time", "1s").wants(t, 0, "created cluster default: ")
	for heartbeat, needs := range map[string]string{
		"700ms": `a holder needs up to 700ms \(one heartbeat\) \+ 700ms \(a reconnect and a report\) = 1\.4s .* more than the confirming time, 1s\. Give --heartbeat 500ms or less`,
		"3s":    `a holder needs up to 3s .* Give --heartbeat 500ms or less`,
	} {
		n := s.node()
		n.flags = []string{"--heartbeat", heartbeat}
		n.start().fails(1, needs)
	}
}

// V2: only a holder that was cut off while the cluster grew notices that ZooKeeper lost its data.
// A worker that this holder does not know of is not given to a new node.
func TestFreezeCoversWorkersTheHolderDoesNotKnow(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--confirm-time", "2s", "--reserve", "3s").made("--confirm-time", "2s")
	a, b := s.node(), s.node()
	wayA, wayB := a.network(), b.network()
	a.start().ready()
	records := s.records()
	wayA.Cut()
	records.burn(16) // like 16 nodes that came and went
	b.start().ready()
	if w := b.worker(); w < 16 {
		t.Fatalf("b is worker %d", w)
	}
	before := b.identity()
	wayB.Cut()
	load := b.clients(2)
	zk.Wipe(t)
	wayA.Heal()
	eventually(t, "frozen", func() bool { c, ok := s.records().cluster(); return ok && c.FrozenUntil != 0 })
	for range 2 {
		s.started().fails(1, `registration is frozen until`)
	}
	load.progress()
	wayB.Heal()
	b.until("its record is back", func() bool { return s.records().slot(before.worker).Node == before.uuid })
	load.progress()
	load.flawless()
	a.get(100)
}

// V2, the documented recovery: all nodes are stopped and ZooKeeper is empty. A node that stopped
// before the cluster grew puts the cluster back.
func TestRecoveryByANodeFromBeforeTheGrowth(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr()).made("--confirm-time", "800ms")
	a := s.started().ready()
	a.get(100)
	wasA := a.identity()
	a.stop()
	s.records().burn(16)
	b := s.started().ready()
	b.get(1000)
	before := b.identity()
	uuid, _ := s.records().cluster()
	b.stop()
	zk.Wipe(t)
	s.started().fails(1, `cluster not found`)
	a.flags = append(a.flags, "--bootstrap")
	a.start().ready().get(100)
	if now := a.identity(); now.worker != wasA.worker || now.uuid != wasA.uuid {
		t.Errorf("a is %+v, and was %+v", now, wasA)
	}
	eventually(t, "the cluster is back", func() bool { c, ok := s.records().cluster(); return ok && c.FrozenUntil != 0 })
	s.started().fails(1, `registration is frozen until`)
	b.start().ready().get(1000)
	if now := b.identity(); now.worker != before.worker || now.uuid != before.uuid {
		t.Errorf("b is %+v, and was %+v", now, before)
	}
	if c, ok := s.records().cluster(); !ok || c.UUID != uuid.UUID || c.Incarnation == 0 {
		t.Errorf("%+v", c)
	}
}

// V2: a node whose lease has ended puts the cluster back too. Like every node without a lease, it
// gets no worker before the end of the freeze.
func TestRecoveryByANodeWithoutALease(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--lease", "2s", "--reserve", "1s").made("--confirm-time", "800ms", "--lease", "2s")
	a := s.started().ready()
	a.get(100)
	uuid, _ := s.records().cluster()
	a.stop()
	zk.Wipe(t)
	ended := a.stored().Record.HMs
	eventually(t, "the lease is over", func() bool { return time.Now().UnixMilli() > ended })
	a.flags = append(a.flags, "--bootstrap")
	a.start().fails(1, `registration is frozen until`)
	c, ok := s.records().cluster()
	if left := time.Until(time.UnixMilli(c.FrozenUntil)); !ok || c.UUID != uuid.UUID || c.Open != "" || left < 5*time.Second {
		t.Errorf("%+v, %s left", c, left)
	}
}

// V3: a node started from its directory alone, issued IDs by a clock that was ahead, and was
// killed. Its identity is reset and its worker is released at once. The next holder begins above
// all issued IDs.
func TestResetIdentityAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	ownclock.Require(t)
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--layout", twoWorkers, "--reserve", "3s").made("--confirm-time", "800ms", "--layout", twoWorkers)
	s.ids.layout = parsedLayout(t, twoWorkers)
	var clock ownclock.Clock
	a := s.node().on(&clock).start().ready()
	id := a.identity()
	a.get(100)
	other := s.started().ready()
	zk.Kill(0)
	a.kill()
	clock.Set(45 * time.Second)
	a.start().ready().get(1000)
	a.kill()
	clock.Set(0)
	zk.Start(0)
	zk.WaitServing(t)
	a.start().fails(1, `the clock is \S+ behind what this worker may have issued\. A start waits 10s at most`)

	execute(t, s.build.binary(t), "reset-identity", "--yes", "--state-dir", a.dir).wants(t, 0,
		fmt.Sprintf("flaked workers release %d --lower-bound --cluster default --state-dir %s", id.worker, a.dir))
	records := s.records()
	eventually(t, "its session is over", func() bool { _, there := records.read(livePath(id.worker), nil); return !there })
	s.command("workers", "release", fmt.Sprint(id.worker), "--lower-bound", "--state-dir", a.dir,
		"--confirm", fmt.Sprintf("%s of worker %d is gone for good", a.name, id.worker)).wants(t, 0, "Its next holder begins at ")
	_, last := s.ids.span(id.worker, 0, s.ids.len())
	if h := records.slot(id.worker).LeaseUntil; h <= last {
		t.Errorf("the next holder begins %d ms below what was issued", last-h)
	}
	// No clock has reached that floor yet, so a new node does not get the worker.
	next := s.node()
	next.start().fails(1, `all 2 workers are held .*releasing`)
	other.get(10)
}

// V4: a copy of the state is made, the node releases its worker, and another node acquires the
// worker. Then the copy is written back in place while ZooKeeper is unreachable. The node does
// not resume from the copy.
func TestCopyWrittenBackAfterARelease(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--layout", twoWorkers).made("--confirm-time", "800ms", "--layout", twoWorkers)
	s.ids.layout = parsedLayout(t, twoWorkers)
	other := s.started().ready()
	a := s.node("--release-on-exit")
	way := a.network()
	a.start().ready().get(100)
	id := a.identity()
	old, err := os.ReadFile(a.stateFile())
	if err != nil {
		t.Fatal(err)
	}
	a.stop()
	taker := s.started().ready()
	if w := taker.worker(); w != id.worker {
		t.Fatalf("worker %d was taken, not %d", w, id.worker)
	}
	load := taker.clients(2)
	if err := os.WriteFile(a.stateFile(), old, 0o600); err != nil {
		t.Fatal(err)
	}
	way.Cut()
	a.start()
	a.until("it says that it needs ZooKeeper", func() bool {
		_, err := a.ask("GET")
		return err != nil && err.Error() == "-NOTREADY starting reason=zookeeper-unreachable"
	})
	load.progress()
	way.Heal()
	a.fails(1, `all 2 workers are held`)
	load.flawless()
	other.get(10)
}

// V5 is a limit: if machine-id and filesystem IDs are cloned too, a machine cannot distinguish a
// volume from its clone. If ZooKeeper is reachable, its record shows that the clone is older than
// what the original has reported, and the clone does not resume.
func TestOldCloneIsNotResumedWithZooKeeper(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t))).made("--confirm-time", "800ms")
	a := s.started().ready()
	id := a.identity()
	records := s.records()
	cloned, err := os.ReadFile(a.stateFile())
	if err != nil {
		t.Fatal(err)
	}
	of := a.writes()
	load := a.clients(1)
	a.until("the original has reported a later state", func() bool { return records.slot(id.worker).Generation > of+2 })
	load.flawless()
	a.kill()
	// The inode stays the same, so that the fingerprint does not differ.
	if err := os.WriteFile(a.stateFile(), cloned, 0o600); err != nil {
		t.Fatal(err)
	}
	a.start().ready().get(100)
	if now := a.identity(); now.uuid == id.uuid || now.worker == id.worker {
		t.Errorf("the clone goes on as %+v", now)
	}
}

// V6: a node with a state directory is started with another chroot and with --bootstrap. It does
// not create a cluster there. It puts its own cluster back only with --zk-replaced.
func TestStateInAnotherZooKeeper(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	a := s.started().ready()
	a.get(100)
	id := a.identity()
	first := a.connect
	a.kill()
	elsewhere := zktest.Chroot(t, zktest.Shared(t)) + "/elsewhere"
	there := newSite(t, elsewhere)
	for range 2 {
		a.connect = elsewhere
		a.start().fails(1, `the state directory was last used with ZooKeeper `+first+`, but ZooKeeper `+elsewhere+` has no record of its worker\. .*--zk-replaced`)
		if c, ok := there.records().cluster(); ok {
			t.Fatalf("it made %+v", c)
		}
	}
	// While the other ZooKeeper is unreachable, the node does not start from its directory
	// alone either.
	way := newNetwork(t, zktest.Shared(t).Addr())
	way.Cut()
	_, chroot, _ := cutChroot(elsewhere)
	a.connect = way.Addr() + chroot
	a.start()
	a.until("it says that it needs ZooKeeper", func() bool {
		_, err := a.ask("GET")
		return err != nil && err.Error() == "-NOTREADY starting reason=zookeeper-unreachable"
	})
	a.kill()
	// With the first ZooKeeper, which has its record, the node resumes.
	a.connect = first
	a.start().ready().get(100)
	if now := a.identity(); now.worker != id.worker || now.uuid != id.uuid {
		t.Errorf("%+v, was %+v", now, id)
	}
	a.stop()
	// --zk-replaced says that the other ZooKeeper has replaced the first. It is needed once.
	a.connect = elsewhere
	a.flags = append(a.flags, "--zk-replaced")
	a.start().ready().get(100)
	a.until("its record is there", func() bool { return there.records().slot(id.worker).Node == id.uuid })
	a.stop()
	a.flags = without(a.flags, "--zk-replaced")
	a.start().ready().get(100)
	there.started().fails(1, `registration is frozen until`)
}
