package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"fmt"
	"os"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Nodes of the release are replaced by nodes of this version, one by one under load, and back again: the steps of
// docs/operate.md.
func TestRollingUpgrade(t *testing.T) {
	if os.Getenv("FLAKED_TEST_LONG") == "" {
		t.Skip("takes two minutes: in make nightly")
	}
	was := release(t)
	m := newMixed(t, was, zktest.Chroot(t, zktest.Shared(t)))
	type roll struct {
		what string
		end  func(*harness.Node)
		to   *harness.Build
	}
	rolls := []roll{
		{"upgraded", (*harness.Node).Stop, harness.Clocked}, {"taken back after kill -9", (*harness.Node).Kill, was},
		{"upgraded after kill -9", (*harness.Node).Kill, harness.Clocked}, {"taken back", (*harness.Node).Stop, was},
	}
	for _, roll := range rolls {
		for i, n := range m.nodes {
			before := n.Identity()
			roll.end(n)
			n.Build = roll.to
			n.Start().Ready()
			after := n.Identity()
			if after.Worker != before.Worker || after.UUID != before.UUID || after.Term != before.Term+1 {
				t.Errorf("%s %s: %+v, and was %+v", n.Name, roll.what, after, before)
			}
			m.flows()
			if i == 1 { // both versions serve
				m.operated(was)
				m.operated(harness.Shipped)
			}
		}
		t.Logf("all nodes are %s", roll.what)
	}
	m.end()
}

// newMixed starts three nodes of a build, and clients of each for IDs and for values of each mode.
func newMixed(t *testing.T, b *harness.Build, connect string, flags ...string) *fleet {
	f := newFleetSite(t, connect, flags...)
	for _, n := range f.OnPorts(3) {
		n.Build = b
		f.has(n, n.Listen)
	}
	f.begin()
	f.Sequence("order")
	f.Sequence("invoice", "--mode", "strict")
	for _, n := range f.nodes {
		f.loads = append(f.loads, n.Clients(1),
			asks(n, func(round int) harness.Question { return drawn("order", round) }),
			asks(n, func(round int) harness.Question { return drawn("invoice", round) }),
			asks(n, func(round int) harness.Question { return harness.WithKey("invoice", fmt.Sprintf("k%d", round/10)) })) // of all nodes
	}
	f.flows()
	return f
}

// asks starts a client of the node.
func asks(n *harness.Node, draw func(round int) harness.Question) *harness.Load {
	l := n.NewLoad()
	l.Add(5*time.Millisecond, harness.CallTimeout, func(c *harness.Client, round int) (int, error) { return c.Values(draw(round)) })
	return l
}

// operated lets commands of a build read and change records of both versions' nodes.
func (f *fleet) operated(b *harness.Build) {
	f.T.Helper()
	run := func(args ...string) harness.Result {
		return harness.Execute(f.T, b.Binary(f.T), append(args, "--zk", f.Connect)...)
	}
	run("seq", "set", "order", "--block", "64").Wants(f.T, 0, "order")
	run("seq", "set", "order", "--block", "32").Wants(f.T, 0, "order")
	for _, version := range []string{releaseTag, harness.TestVersion} {
		run("status").Reads(f.T, version)
	}
	run("doctor", "--state-dir", f.nodes[0].Dir, "--listen", "127.0.0.1:0", "--heartbeat", "500ms").
		Reads(f.T, "holds worker")
}
