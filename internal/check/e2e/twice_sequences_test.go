package e2e

import (
	"maps"
	"slices"
	"strconv"
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
	s.sequences()
	all := map[string]*values{}
	create := func(name string, flags ...string) {
		s.command(append([]string{"seq", "create", name}, flags...)...).wants(t, 0, "created sequence "+name)
	}
	for _, name := range []string{"order", "invoice", "again"} {
		all[name] = &values{t: t, seen: map[int64]bool{}}
	}
	create("order")
	create("invoice", "--mode", "strict")
	create("again")
	ask := func(count int) {
		for name, values := range all {
			for _, n := range nodes {
				n.takes(name, count, values)
			}
		}
	}
	ask(10)
	backup := zk.Backup(t, 0)
	ask(100)
	s.command("seq", "delete", "again", "--confirm", "delete sequence again").wants(t, 0, "again")
	create("again")
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
		n.takes("order", 100, all["order"])
		n.takes("again", 100, all["again"])
		n.asks("invoice", time.Second, all["invoice"]) // it may be frozen
	}
	// The nodes know fewer values than programs do, because they were killed.
	highest := slices.Max(slices.Collect(maps.Keys(all["invoice"].seen)))
	s.recoversAt("invoice", highest+1, nodes...)
	for _, n := range nodes {
		n.takes("invoice", 100, all["invoice"])
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
	s.sequences()
	s.command("seq", "create", "order", "--ceiling", "100").wants(t, 0, "created sequence order")
	order := &values{t: t, seen: map[int64]bool{}}
	behind.takes("order", 1, order)
	backup := zk.Backup(t, 0)
	s.reported(behind)
	s.reported(behind)
	network.cut()
	busy.exhausts("order", 13*time.Second, order)
	t.Logf("%d values, nearly all after the backup", len(order.seen))
	busy.kill()
	clock.Step(-11 * time.Minute)
	zk.Restore(t, backup)
	network.heal()
	behind.takes("order", 100, order)
}

// exhausts takes all values that the ceiling allows, for a time.
func (n *node) exhausts(name string, d time.Duration, all *values) {
	t := n.site.t
	t.Helper()
	c, err := n.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-pace.C {
		line, err := c.ask("NEXT " + name + " 20")
		for left := 19; err == nil; left-- {
			v, bad := strconv.ParseInt(line, 10, 64)
			if bad != nil {
				t.Fatal(bad)
			}
			all.add(v)
			if left == 0 {
				break
			}
			line, err = c.line()
		}
	}
}
