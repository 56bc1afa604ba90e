package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// All nodes are killed, older data is put back, and the nodes start with their directories. In the
// older data, one sequence is in its first life, which has ended since.
func TestKilledNodesStartIntoOlderData(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--reserve", "1s", "--confirm-time", "2s").made("--confirm-time", "2s")
	nodes := s.startedTogether(2)
	all := map[string]*values{
		"order": s.sequence("order"), "invoice": s.sequence("invoice", "--mode", "strict"),
		"again": s.sequence("again"),
	}
	ask := func(count int64) {
		for _, values := range all {
			for _, n := range nodes {
				values.from(n, count)
			}
		}
	}
	ask(10)
	backup := zk.Backup(t, 0)
	ask(100)
	s.command("seq", "delete", "again", "--confirm", "delete sequence again").wants(t, 0, "again")
	s.sequence("again") // its values go on in all
	ask(100)
	for _, n := range nodes {
		n.kill()
	}
	zk.Restore(t, backup)
	for _, n := range nodes {
		n.start()
	}
	for _, n := range nodes {
		n.ready()
	}
	for _, n := range nodes {
		all["order"].from(n, 100)
		all["again"].from(n, 100)
		all["invoice"].during(n, time.Second, 1) // it may be frozen
	}
	// The nodes know fewer values than programs do, because they were killed.
	highest := slices.Max(slices.Collect(maps.Keys(all["invoice"].seen)))
	s.recovers("invoice", highest+1, nodes...)
	for _, n := range nodes {
		all["invoice"].from(n, 100)
	}
}

// A node notices the loss of many values, and takes the first block after it. Its clock is 11 minutes
// behind, so that it does not know from the clock how old the record is.
func TestSkipAfterALossNeedsNoClock(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--reserve", "1s", "--confirm-time", "2s").made("--confirm-time", "2s")
	clock := new(ownclock.Clock)
	behind := s.node().on(clock)
	network := behind.network()
	behind.start().ready()
	busy := s.started().ready()
	order := s.sequence("order", "--ceiling", "100")
	order.from(behind, 1)
	backup := zk.Backup(t, 0)
	s.reported(behind)
	s.reported(behind)
	network.cut()
	order.during(busy, 13*time.Second, 20)
	t.Logf("%d values, nearly all after the backup", len(order.seen))
	busy.kill()
	clock.Step(-11 * time.Minute)
	zk.Restore(t, backup)
	network.heal()
	order.from(behind, 100)
}

// Two nodes serve sequences while a snapshot is put back on running servers. A node that is not disconnected
// by this must not take values from the older data either.
func TestSequencesUnderARestoreOfRunningServers(t *testing.T) {
	t.Parallel()
	zk := zktest.ThreeWithAdmin(t)
	s := newSite(t, zk.Addr(), "--reserve", "3s", "--confirm-time", "2s").made("--confirm-time", "2s")
	nodes := s.startedTogether(2)
	all := map[string]*values{}
	for name, mode := range map[string]string{"order": "segment", "invoice": "strict"} {
		all[name] = s.sequence(name, "--mode", mode)
		for _, n := range nodes {
			all[name].from(n, 20)
			all[name].under(n, 1)
		}
	}
	snapshot := zk.AdminSnapshot(t, 0)
	for _, values := range all {
		values.from(nodes[0], 300)
	}
	zk.AdminRestore(t, snapshot)
	records := s.records()
	eventually(t, "registration is frozen", func() bool { c, ok := records.cluster(); return ok && c.FrozenUntil != 0 })
	all["order"].from(nodes[0], 300)
}

// The clock of one of two nodes goes back by 11 minutes, and the other one's ahead. A key of a strict
// sequence has one value, whichever node is asked first.
func TestKeysNeedNoClock(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "1s")
	clock := new(ownclock.Clock)
	right, behind := s.started(), s.node().on(clock).start()
	right.ready()
	behind.ready()
	s.sequence("invoice", "--mode", "strict")
	clock.Step(-11 * time.Minute)
	behind.goesBy(-11 * time.Minute)
	ask := func(n *node, key string) (v string) {
		n.until("it gives a value", func() bool {
			line, err := n.ask("NEXT invoice " + key)
			v = strings.TrimSpace(line)
			return err == nil
		})
		return v
	}
	for i := range 4 {
		key := fmt.Sprintf("key%d", i)
		first := ask(behind, key)
		for _, n := range []*node{right, behind, right} {
			if v := ask(n, key); v != first {
				t.Errorf("%s had %s, and has %s now", key, first, v)
			}
		}
	}
}

// A name lives three times. Nobody uses the second life, which begins far above the first.
func TestUnusedLifeHidesNoEarlierOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.started().ready()
	all := &values{t: t, name: "order", seen: map[int64]bool{}}
	const farAbove = "1000000000" // above all values of the first life
	for _, start := range []string{"", farAbove, "1"} {
		if start == "" {
			s.sequence("order")
		} else {
			s.sequence("order", "--start", start)
		}
		if start != farAbove { // a node may issue from the life before until its next heartbeat
			all.from(n, 13)
			all.during(n, time.Second, 1)
		}
		if start != "1" {
			s.command("seq", "delete", "order", "--confirm", "delete sequence order").wants(t, 0, "order")
		}
	}
}
