package e2e

import (
	"os"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// long skips a test that takes a minute, unless it runs in `make nightly`.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("FLAKED_TEST_LONG") == "" {
		t.Skip("takes a minute: set FLAKED_TEST_LONG=1")
	}
	t.Parallel()
}

// ZooKeeper loses its data while all nodes serve. They go on by themselves, above all that was answered before.
func TestOrderedSequencesSurviveALossOfData(t *testing.T) {
	long(t)
	zk := zktest.Single(t)
	f := newFleet(t, zk.Addr(), "--reserve", "3s").program()
	old := zk.Backup(t, 0)
	moved := func() { // other nodes own the sections now than in the copy
		for _, n := range f.nodes[:2] {
			n.stop()
			n.start().ready()
		}
	}
	stopped := func() {
		owner := f.owner(plain)
		owner.proc.freeze()
		zk.Restore(t, old)
		pass(t.Context(), ownerLease)
		owner.proc.thaw()
	}
	moved()
	f.flows()
	for _, loss := range []struct {
		what string
		do   func()
	}{
		{"restarted", func() { zk.Kill(0); zk.Start(0); zk.WaitServing(t) }},
		{"restored", func() { zk.Restore(t, old) }},
		{"wiped", func() { zk.Wipe(t) }},
		{"restored again", func() { moved(); zk.Restore(t, old) }},
		{"restored while the owner stands still", stopped},
	} {
		from := f.ids.now()
		loss.do()
		lost := f.ids.now()
		for _, n := range f.nodes {
			f.answered(n, lost)
		}
		d, name := f.silence(from)
		t.Logf("%s: no value of %s for %s", loss.what, name, d)
	}
	f.check()
}
