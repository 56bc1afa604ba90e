package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/ownclock"
	"github.com/flaked/flaked/localcache"
)

// hasServed makes the state directory of a node that is stopped say that it has
// served for so long: what it takes to earn a long lease, and more than a test
// has the time for.
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

// figures are the numbers in STATS, milliseconds for the most part.
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

// figure is one of them.
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

// lives has time pass for a node, two seconds at a time, and asks it for IDs
// after each. No question may fail. The node gets what it takes to put a bound
// on the disk that has come due: what we leave out is the waiting in between.
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
	look := time.NewTicker(time.Millisecond) // a thousand bounds are waited for
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

// All of ZooKeeper is gone for an hour, and no question fails. When it is back,
// the node is who it was.
//
// The hour passes on all of the machine's clocks and not on the wall clock
// alone: the node pushes its bound on the disk by the monotonic one. It lives
// through all that an hour holds, 1,200 heartbeats that fail and a thousand
// writes to the disk; only the time in between is left out. A lease that long is
// for nodes that have served for half an hour: forty minutes are put into its
// record between two runs, and the lease it earns by that itself.
func TestHourWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	// ZooKeeper's machines are others: no time can be passed for a JVM (see
	// ownclock), but it is not there to see it.
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
	// The usual way from here on: it is as busy as the machine is.
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
