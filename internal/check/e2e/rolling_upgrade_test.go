package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// mixed is a fleet whose nodes may be of different versions. The fleet records the requests for ordered sequences.
// segments and strict record those for another sequence each.
type mixed struct {
	*fleet
	segments, strict *fleet
}

// Nodes of the release are replaced by nodes of this version, one by one under load, and back again: the steps of
// docs/upgrading.md.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	was := release(t)
	m := newMixed(t, was)
	type roll struct {
		what string
		end  func(*node)
		to   *build
	}
	rolls := []roll{{"upgraded", (*node).stop, shipped}, {"taken back after kill -9", (*node).kill, was}}
	if os.Getenv("FLAKED_TEST_LONG") != "" { // in make nightly
		rolls = append(rolls, roll{"upgraded after kill -9", (*node).kill, shipped}, roll{"taken back", (*node).stop, was})
	}
	for _, roll := range rolls {
		for i, n := range m.nodes {
			before := n.identity()
			roll.end(n)
			n.build = roll.to
			n.start().ready()
			after := n.identity()
			if after.worker != before.worker || after.uuid != before.uuid || after.term != before.term+1 {
				t.Errorf("%s %s: %+v, and was %+v", n.name, roll.what, after, before)
			}
			m.flows()
			if i == 1 { // both versions serve
				m.operated(was)
				m.operated(shipped)
			}
		}
		t.Logf("all nodes are %s", roll.what)
	}
	m.judge()
}

// newMixed starts three nodes of a build, and clients of each.
func newMixed(t *testing.T, b *build) *mixed {
	f := newFleetSite(t, zktest.Chroot(t, zktest.Shared(t)))
	for range 3 {
		n := f.node()
		n.build, n.listen = b, fmt.Sprintf("127.0.0.1:%d", zktest.Port(t)) // clients go on over restarts
		f.nodes, f.addresses = append(f.nodes, n), append(f.addresses, n.listen)
	}
	f.begin()
	m := &mixed{fleet: f, segments: &fleet{site: f.site}, strict: &fleet{site: f.site}}
	m.sequence("order")
	m.sequence("invoice", "--mode", "strict")
	for _, n := range m.nodes {
		m.loads = append(m.loads, n.clients(1),
			n.asks(func(c *client, round int) (int, error) { return m.segments.ask(c, "order", round) }),
			n.asks(func(c *client, round int) (int, error) { return m.strict.ask(c, "invoice", round) }),
			n.asks(m.strict.askWithKey))
	}
	m.flows()
	return m
}

// asks starts a client of the node.
func (n *node) asks(ask func(c *client, round int) (int, error)) *load {
	l := n.newLoad()
	l.add(5*time.Millisecond, callTimeout, ask)
	return l
}

// askWithKey takes a value with a key. Clients of all nodes use the same keys.
func (f *fleet) askWithKey(c *client, round int) (int, error) {
	key := fmt.Sprintf("k%d", round/10)
	q := question{name: "invoice", text: "NEXT invoice " + key + "\n", n: 1, lines: 1}
	r := order.Request{Name: q.name, Node: c.node.id, Sent: f.ids.now(), Key: key}
	got, err := q.exchange(c)
	r.Answered = f.ids.now()
	f.record(r, q, got, err)
	return len(got), err
}

// operated lets commands of a build read and change records of both versions' nodes.
func (m *mixed) operated(b *build) {
	m.t.Helper()
	run := func(args ...string) result {
		return execute(m.t, b.binary(m.t), append(args, "--zk", m.connect)...)
	}
	run("seq", "set", "order", "--block", "64").wants(m.t, 0, "order")
	run("seq", "set", "order", "--block", "32").wants(m.t, 0, "order")
	for _, version := range []string{releaseTag, testVersion} {
		run("status").reads(m.t, version)
	}
	run("doctor", "--state-dir", m.nodes[0].dir, "--listen", "127.0.0.1:0", "--heartbeat", "500ms").
		reads(m.t, "holds worker")
}

// judge ends the clients and fails the test if a value came twice, an order was broken, or a key had two values.
func (m *mixed) judge() {
	m.t.Helper()
	m.check()
	segments, strict := m.segments.history(), m.strict.history()
	for _, v := range slices.Concat(order.Twice(segments), order.Strict(strict, nil),
		order.Rising(segments, func(r order.Request) int { return r.Node })) {
		m.t.Error(v)
	}
	m.t.Logf("%d requests for segments, %d for strict values", len(segments), len(strict))
}
