package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Nodes of the release are replaced by nodes of this version, one by one under load, and back again: the steps of
// docs/upgrading.md.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	was := release(t)
	m := newMixed(t, was, zktest.Chroot(t, zktest.Shared(t)))
	type roll struct {
		what string
		end  func(*node)
		to   *build
	}
	rolls := []roll{{"upgraded", (*node).stop, clocked}, {"taken back after kill -9", (*node).kill, was}}
	if os.Getenv("FLAKED_TEST_LONG") != "" { // in make nightly
		rolls = append(rolls, roll{"upgraded after kill -9", (*node).kill, clocked}, roll{"taken back", (*node).stop, was})
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
	m.end()
}

// newMixed starts three nodes of a build, and clients of each for IDs and for values of each mode.
func newMixed(t *testing.T, b *build, connect string, flags ...string) *fleet {
	f := newFleetSite(t, connect, flags...)
	for _, n := range f.onPorts(3) {
		n.build = b
		f.has(n, n.listen)
	}
	f.begin()
	f.sequence("order")
	f.sequence("invoice", "--mode", "strict")
	for _, n := range f.nodes {
		f.loads = append(f.loads, n.clients(1),
			n.asks(func(round int) question { return drawn("order", round) }),
			n.asks(func(round int) question { return drawn("invoice", round) }),
			n.asks(func(round int) question { return withKey("invoice", fmt.Sprintf("k%d", round/10)) })) // of all nodes
	}
	f.flows()
	return f
}

// asks starts a client of the node.
func (n *node) asks(draw func(round int) question) *load {
	l := n.newLoad()
	l.add(5*time.Millisecond, callTimeout, func(c *client, round int) (int, error) { return c.values(draw(round)) })
	return l
}

// operated lets commands of a build read and change records of both versions' nodes.
func (f *fleet) operated(b *build) {
	f.t.Helper()
	run := func(args ...string) result {
		return execute(f.t, b.binary(f.t), append(args, "--zk", f.connect)...)
	}
	run("seq", "set", "order", "--block", "64").wants(f.t, 0, "order")
	run("seq", "set", "order", "--block", "32").wants(f.t, 0, "order")
	for _, version := range []string{releaseTag, testVersion} {
		run("status").reads(f.t, version)
	}
	run("doctor", "--state-dir", f.nodes[0].dir, "--listen", "127.0.0.1:0", "--heartbeat", "500ms").
		reads(f.t, "holds worker")
}
