package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A node is killed and restarted while ZooKeeper is down. It starts from its state directory
// alone, and reports to ZooKeeper when that is back.
func TestRestartServesWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr())
	n := s.started().ready()
	before := n.identity()
	n.get(1000)
	// A node that has confirmed may start from its directory alone.
	if r := n.stored(); !r.Claim.EverConfirmed {
		t.Fatalf("a node that serves has stored %+v", r)
	}
	zk.Kill(0)
	n.kill()

	n.start().ready()
	if alone := n.identity(); alone != before {
		t.Errorf("%+v without ZooKeeper, %+v before", alone, before)
	}
	n.get(1000)
	// Restart it again, like a supervisor does.
	n.kill()
	n.start().ready().get(1000)

	n.stop()
	n.flags = append(n.flags, "--reserve", "3s") // the machine may be busy
	n.start().ready()
	load := n.clients(2)
	zk.Start(0)
	zk.WaitServing(t)
	n.until("a higher term", func() bool { id, err := n.tryIdentity(); return err == nil && id.term > before.term })
	load.progress()
	if after := n.identity(); after.worker != before.worker || after.uuid != before.uuid {
		t.Errorf("%+v after %+v", after, before)
	}
	load.flawless()
	n.until("ZooKeeper has the term", func() bool {
		slot := s.records().slot(before.worker)
		return slot.Confirmed && slot.Term == int64(n.identity().term)
	})
}
