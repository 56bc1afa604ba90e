package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/ownclock"
	"github.com/flaked/flaked/internal/zktest"
)

// Six attacks by which an earlier version answered IDs twice, V1 to V6 of
// docs/faults.md. Each test's history is judged when it ends.

// made makes the site's cluster, so that no node has to.
func (s *site) made(flags ...string) *site {
	s.t.Helper()
	s.flags = without(s.flags, "--bootstrap")
	s.command(append([]string{"cluster", "init"}, flags...)...).wants(s.t, 0, "is made")
	return s
}

// V1: ZooKeeper's data are put back to a copy that does not know the owner. It
// notices before a newcomer on its worker may issue, however long its session is.
func TestOwnerNoticesALossWhateverItsSessionTimeoutIs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		settle string
		times  int
		flags  []string
	}{
		"long session":    {"4s", 1, []string{"--zk-session-timeout", "30s"}},
		"short settling":  {"2s", 1, []string{"--zk-session-timeout", "6s"}},
		"restored twice":  {"3s", 2, []string{"--zk-session-timeout", "20s"}},
		"fast heartbeats": {"3s", 1, []string{"--zk-session-timeout", "30s", "--heartbeat", "100ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zk := zktest.Single(t)
			s := newSite(t, zk.Addr(), append([]string{"--heartbeat", "500ms", "--settle", row.settle, "--reserve", "3s"}, row.flags...)...).made("--settle", row.settle)
			copied := zk.Snapshot(t)
			owner := s.started().ready()
			id := owner.identity()
			load := owner.clients(2)
			for range row.times {
				zk.Restore(t, copied)
				newcomer := s.started()
				newcomer.fails(1, `registration is frozen until`)
				owner.until("its record is back", func() bool { return s.records().slot(id.worker).Node == id.uuid })
			}
			load.progress()
			load.flawless()
		})
	}
}

// V1: values for which an owner could notice too late are refused, with the reason.
func TestHeartbeatTooSlowToNoticeIsRefused(t *testing.T) {
	t.Parallel()
	connect := zktest.Chroot(t, zktest.Shared(t))
	s := newSite(t, connect)
	s.flags = without(s.flags, "--bootstrap")
	s.command("cluster", "init", "--settle", "400ms").wants(t, 2, "a settling time of 400ms: it must be 410ms to 1h")
	s.command("cluster", "init", "--settle", "0s").wants(t, 2, "an owner cannot notice in time that ZooKeeper lost data")
	s.command("cluster", "init", "--settle", "1s").wants(t, 0, "is made")
	for heartbeat, needs := range map[string]string{
		"700ms": `an owner needs up to 700ms \(one heartbeat\) \+ 700ms \(a reconnect and a report\) = 1\.4s .* more than the settling time, 1s; give --heartbeat 500ms or less`,
		"3s":    `an owner needs up to 3s .* give --heartbeat 500ms or less`,
	} {
		n := s.node()
		n.flags = []string{"--heartbeat", heartbeat}
		n.start().fails(1, needs)
	}
}

// V2: an owner that was cut off while the cluster grew is the only one to notice that
// ZooKeeper lost its data. A worker that it does not know of is not given out.
func TestGrowthUnknownToTheOwnerThatNotices(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--settle", "2s", "--reserve", "3s").made("--settle", "2s")
	a, b := s.node(), s.node()
	wayA, wayB := a.network(), b.network()
	a.start().ready()
	records := s.records()
	wayA.Cut()
	records.burn(16) // as many came and went
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

// V2, the documented recovery: everything was stopped, and ZooKeeper is empty. An old
// node that stopped before the cluster grew puts the cluster back.
func TestRecoveryByANodeFromBeforeTheGrowth(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr()).made("--settle", "800ms")
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
	s.started().fails(1, `no such cluster`)
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

// V2: the old node's lease has ended. It puts the cluster back all the same, and
// waits for the end of the freeze like everybody who has no lease.
func TestRecoveryByANodeWithoutALease(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--lease", "2s", "--reserve", "1s").made("--settle", "800ms", "--lease", "2s")
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

// V3: a node issued by a clock that was ahead, from its directory alone, and was
// killed. Its state is reset, and its worker freed at once: whoever takes it begins
// above all that was issued.
func TestResetIdentityAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	ownclock.Require(t)
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--layout", twoWorkers, "--reserve", "3s").made("--settle", "800ms", "--layout", twoWorkers)
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
	a.start().fails(1, `the clock is \S+ behind what this worker may have issued already`)

	execute(t, s.build.binary(t), "reset-identity", "--yes", "--state-dir", a.dir).wants(t, 0,
		fmt.Sprintf("flaked workers release %d --lower-bound --cluster default --state-dir %s", id.worker, a.dir))
	records := s.records()
	eventually(t, "its session is over", func() bool { _, there := records.read(livePath(id.worker), nil); return !there })
	s.command("workers", "release", fmt.Sprint(id.worker), "--lower-bound", "--state-dir", a.dir,
		"--confirm", fmt.Sprintf("%s of worker %d is gone for good", a.name, id.worker)).wants(t, 0, "its next holder begins at ")
	_, last := s.ids.span(id.worker, 0, s.ids.len())
	if h := records.slot(id.worker).H; h <= last {
		t.Errorf("the next holder begins %d ms below what was issued", last-h)
	}
	// The next holder waits until its clock is there, more than it would at a start.
	next := s.node()
	next.start().fails(1, `all 2 worker slots are held .*cooling`)
	other.get(10)
}

// V4: a copy of the state is made, the node gives its worker back, and another takes
// it. The copy is written back in place, and ZooKeeper cannot be asked: the node has
// nothing to start from.
func TestCopyWrittenBackAfterARelease(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--layout", twoWorkers).made("--settle", "800ms", "--layout", twoWorkers)
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
	a.fails(1, `all 2 worker slots are held`)
	load.flawless()
	other.get(10)
}

// V5 is a limit: nothing on a machine tells a volume from its clone, where machine-id
// and filesystem ids are cloned as well. What holds is that ZooKeeper, if it can be
// asked, knows that the clone is older than what the original has reported.
func TestCloneThatZooKeeperKnowsToBeOld(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t))).made("--settle", "800ms")
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
	if err := os.WriteFile(a.stateFile(), cloned, 0o600); err != nil { // the same inode: a clone for all that flaked sees
		t.Fatal(err)
	}
	a.start().ready().get(100)
	if now := a.identity(); now.uuid == id.uuid || now.worker == id.worker {
		t.Errorf("the clone goes on as %+v", now)
	}
}

// V6: a node with its state is pointed at another chroot, and told to make clusters.
// It makes none there, and does not put its own back, but for the explicit word.
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
		a.start().fails(1, `the state directory was last used with ZooKeeper `+first+`, and `+elsewhere+` does not have the record of its worker: .*--zk-replaced`)
		if c, ok := there.records().cluster(); ok {
			t.Fatalf("it made %+v", c)
		}
	}
	// One that ZooKeeper cannot tell does not start from its directory either.
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
	// Where its record is it goes on, by whatever name.
	a.connect = first
	a.start().ready().get(100)
	if now := a.identity(); now.worker != id.worker || now.uuid != id.uuid {
		t.Errorf("%+v, was %+v", now, id)
	}
	a.stop()
	// The other one has taken the place of the first: said once, in so many words.
	a.connect = elsewhere
	a.flags = append(a.flags, "--zk-replaced")
	a.start().ready().get(100)
	a.until("its record is there", func() bool { return there.records().slot(id.worker).Node == id.uuid })
	a.stop()
	a.flags = without(a.flags, "--zk-replaced")
	a.start().ready().get(100)
	there.started().fails(1, `registration is frozen until`)
}
