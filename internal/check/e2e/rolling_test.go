package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// trio is a cluster of three nodes, and clients that ask any of them.
type trio struct {
	*site
	nodes              []*node
	ids, order, strict *load
}

// newTrio starts the nodes and waits until all take values.
func newTrio(t *testing.T, connect, heartbeat, confirm string) *trio {
	t.Helper()
	s := newSite(t, connect, "--heartbeat", heartbeat, "--confirm-time", confirm, "--reserve", "1s",
		"--zk-session-timeout", "6s")
	c := &trio{site: s, nodes: s.onPorts(3)}
	for _, n := range c.nodes {
		n.start()
	}
	for _, n := range c.nodes {
		n.ready()
	}
	order, invoice := s.sequence("order"), s.sequence("invoice", "--mode", "strict")
	for _, n := range c.nodes {
		order.from(n, 100)
		invoice.from(n, 1)
	}
	c.ids = s.anyOf(c.nodes, func(c *client) (int, error) { return c.counted("GET\n", 1) })
	c.order = s.anyOf(c.nodes, func(c *client) (int, error) { return c.values(next(order.name)) })
	c.strict = s.anyOf(c.nodes, func(c *client) (int, error) { return c.values(next(invoice.name)) })
	return c
}

// The promises are no outage for IDs and values of segments, and a second for strict ones. The machine is busy. A node
// that waits for the confirming time takes 8 s.
const (
	noOutage     = 2 * time.Second
	strictOutage = 2500 * time.Millisecond
)

// outages fails the test if clients had to wait for longer since the last call.
func (c *trio) outages(what string, strict time.Duration) {
	c.t.Helper()
	ids, order, numbers := c.ids.outage(), c.order.outage(), c.strict.outage()
	c.t.Logf("%s: no ID for %s, no value for %s, no strict one for %s", what, ids, order, numbers)
	if ids > noOutage || order > noOutage || numbers > strict {
		c.t.Errorf("%s: no ID for %s, no value for %s, no strict one for %s", what, ids, order, numbers)
	}
}

// Nodes restart one after the other, each when the one before is ready. A client that asks the next node on a refusal
// gets IDs and values at all times. A node says READY when it takes values of sequences. It waits neither for nodes that
// have ended, nor for those that start like itself.
func TestRollingRestartRefusesNothing(t *testing.T) {
	t.Parallel()
	c := newTrio(t, zktest.Chroot(t, zktest.Shared(t)), "2s", "8s")
	c.outages("before", strictOutage)
	ready := func(n *node, end string, began time.Time) {
		n.ready()
		took := time.Since(began)
		t.Logf("%s: ready %s after %s", n.name, took, end)
		if took > 6*time.Second { // else it takes a second
			t.Errorf("%s: ready only %s after %s, as if it had waited for the confirming time", n.name, took, end)
		}
	}
	for i, ends := range []func(*node){(*node).stop, (*node).kill} {
		for _, n := range c.nodes {
			ends(n)
			end, began := []string{"SIGTERM", "kill -9"}[i], time.Now()
			ready(n.start(), end, began)
			c.outages(n.name+" after "+end, strictOutage)
		}
	}
	c.nodes[0].stop()
	pass(t.Context(), 4200*time.Millisecond) // its heartbeats have a gap, so it waits for the confirming time
	c.nodes[0].start().ready()
	c.outages("a pause", strictOutage)
	c.nodes[1].kill()
	c.nodes[2].stop()
	c.outages("only "+c.nodes[0].name+" is there", strictOutage)
	c.nodes[0].kill()
	began := time.Now()
	for _, n := range c.nodes {
		n.start()
	}
	for _, n := range c.nodes {
		ready(n, "a start of all nodes", began)
	}
}

// ZooKeeper is away for a short time, and has lost nothing. If all heartbeats come more than 6 s after the ones before,
// strict values wait for the confirming time. So the longest outage begins when a heartbeat has just been made.
func TestValuesFlowAfterZooKeeperWasAway(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	c := newTrio(t, zk.Addr(), "3s", "12s") // the defaults
	c.outages("before", strictOutage)
	beats := func() bool { return len(c.nodes[0].stat("heartbeat_age_ms")) <= 2 } // below 100
	frozen := func(d time.Duration) func() {
		return func() { zk.Freeze(0); pass(t.Context(), d); zk.Thaw(0) }
	}
	for what, away := range map[string]func(){
		"stopped for 1.5 s":  frozen(1500 * time.Millisecond),
		"stopped for 4 s":    func() { eventually(t, "a heartbeat", beats); frozen(4 * time.Second)() },
		"killed and started": func() { zk.Kill(0); zk.Start(0); zk.WaitServing(t) },
	} {
		c.outages("before", strictOutage)
		began := time.Now()
		away()
		took := time.Since(began)
		if took > 4500*time.Millisecond { // the machine is busy: heartbeats may have a gap
			took += 12 * time.Second
		}
		c.outages("ZooKeeper "+what, took+2*flowing)
		pass(t.Context(), 4*time.Second) // until the next heartbeats
	}
}

// flowing is the time after a short outage of ZooKeeper in which strict values are issued.
const flowing = 2 * time.Second
