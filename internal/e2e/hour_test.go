package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/localcache"
)

// hasServed sets the time that a stopped node has served, in its state directory. A long lease
// requires a long time, which a test cannot wait for.
func (n *node) hasServed(d time.Duration) {
	t := n.site.t
	t.Helper()
	cache, err := localcache.Open(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	r := cache.Load().Record
	r.ServedMs = d.Milliseconds()
	if _, err := cache.Save(r); err != nil {
		t.Fatal(err)
	}
}

// figures returns the numbers in STATS by name. Most are milliseconds.
func (c *client) figures() (map[string]int64, error) {
	figures := map[string]int64{}
	line, err := c.ask("STATS")
	for ; err == nil && line != "END"; line, err = c.line() {
		name, value, _ := strings.Cut(line, " ")
		if v, err := strconv.ParseInt(value, 10, 64); err == nil {
			figures[name] = v
		}
	}
	return figures, err
}

// figure returns a figure of STATS that is in milliseconds.
func (n *node) figure(name string) time.Duration {
	n.site.t.Helper()
	c, err := n.dial()
	if err != nil {
		n.site.t.Fatalf("%s: %v", n.name, err)
	}
	defer c.close()
	figures, err := c.figures()
	if _, ok := figures[name]; !ok {
		n.site.t.Fatalf("%s: STATS without %s: %v", n.name, name, err)
	}
	return millis(figures[name])
}

// lives lets time d pass for a node in steps of two seconds, and asks for IDs after each step.
// No request may fail. Before each step it waits until the node has extended its reserved bound
// on the disk. So only the idle time in between is skipped.
func (n *node) lives(clock *ownclock.Clock, d time.Duration) {
	t := n.site.t
	t.Helper()
	var clients []*client
	for range 3 {
		c, err := n.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		clients = append(clients, c)
	}
	look := time.NewTicker(time.Millisecond) // short: there are a thousand waits
	defer look.Stop()
	const step = 2 * time.Second
	late := time.Now().Add(patience)
	for passed := time.Duration(0); passed < d; {
		figures, err := clients[0].figures()
		if err != nil || time.Now().After(late) {
			t.Fatalf("%s: after %s: %v, its bound on the disk is %d ms ahead", n.name, passed, err, figures["reserved_ms"])
		}
		if figures["reserved_ms"] < 4000 {
			<-look.C
			continue
		}
		clock.Pass(step)
		passed, late = passed+step, time.Now().Add(patience)
		for _, c := range clients[1:] {
			if _, err := c.get(1); err != nil {
				t.Fatalf("%s: after %s a question fails: %v", n.name, passed, err)
			}
		}
	}
}

// All ZooKeeper servers are down for an hour, and no request fails. When they are back, the
// node has the same identity.
//
// The hour passes on all clocks of the machine, because the node extends its reserved bound by the
// monotonic clock. The node makes everything that an hour holds: 1,200 heartbeats that fail, and a
// thousand writes to the disk. Only the time in between is skipped. A node needs half an hour of
// service for a lease of that length. So the test writes forty minutes of service into the node's
// record between two runs. The node then extends its lease by itself.
func TestHourWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	// ZooKeeper has a clock of its own, because Pass does not work for a JVM (see
	// ownclock). It is down while the hour passes.
	var machine, theirs ownclock.Clock
	zk, s := asShipped(t, &theirs)
	n := s.node("--reserve", "9s", "--zk-session-timeout", "1s").on(&machine).start().ready()
	before := n.identity()
	n.get(100)
	n.stop()
	n.hasServed(40 * time.Minute)
	n.start().ready()
	n.until("a lease of more than an hour", func() bool { return n.figure("lease_left_ms") > 70*time.Minute })

	for i := range 3 {
		zk.Kill(i)
	}
	n.heartbeats(false)
	began := time.Now()
	n.lives(&machine, time.Hour)
	n.made(n.get(1)[0], machine.Offset())
	n.goesBy(machine.Offset())
	t.Logf("without ZooKeeper for %s, in %s; %s of the lease left", machine.Offset(), time.Since(began), n.figure("lease_left_ms"))
	// From here on time passes at its normal speed.
	load := n.clients(2)
	if n.stat("zookeeper_ok") != "false" {
		t.Error("it says that it reaches ZooKeeper")
	}
	theirs.Set(machine.Offset())
	for i := range 3 {
		zk.Start(i)
	}
	zk.WaitServing(t)
	n.heartbeats(true)
	load.progress()
	load.flawless()
	if after := n.identity(); after.worker != before.worker || after.uuid != before.uuid {
		t.Errorf("%+v after %+v", after, before)
	}
}
