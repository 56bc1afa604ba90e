package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// These tests replay attacks V1 to V6, by which an earlier version issued IDs twice. The section
// "What was found" of docs/faults.md describes most of them, without these labels. The history of
// each test is checked at its end.

// V6: a node with a state directory is started with another chroot and with --bootstrap. It does
// not create a cluster there. It puts its own cluster back only with --zk-replaced.
func TestStateInAnotherZooKeeper(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	a := s.started().ready()
	a.get(100)
	id := a.identity()
	first := a.connect
	a.kill()
	elsewhere := zktest.Chroot(t, zktest.Shared(t)) + "/elsewhere"
	there := newSite(t, elsewhere)
	for range 2 {
		a.connect = elsewhere
		a.start().fails(1, `last used with ZooKeeper `+first+`, but .* has no record of its worker\. .*--zk-replaced`)
		if c, ok := there.records().cluster(); ok {
			t.Fatalf("it made %+v", c)
		}
	}
	// While the other ZooKeeper is unreachable, the node does not start from its directory
	// alone either.
	way := newNetwork(t, zktest.Shared(t).Addr())
	way.Cut()
	_, chroot := cutChroot(elsewhere)
	a.connect = way.Addr() + chroot
	a.start()
	a.until("it says that it needs ZooKeeper", func() bool {
		_, err := a.ask("GET")
		return err != nil && err.Error() == "-NOTREADY starting reason=zookeeper-unreachable"
	})
	a.kill()
	// With the first ZooKeeper, which has its record, the node resumes.
	a.connect = first
	a.start().ready().get(100)
	if now := a.identity(); now.worker != id.worker || now.uuid != id.uuid {
		t.Errorf("%+v, was %+v", now, id)
	}
	a.stop()
	// --zk-replaced says that the other ZooKeeper has replaced the first. It is needed once.
	a.connect = elsewhere
	a.flags = append(a.flags, "--zk-replaced")
	a.start().ready().get(100)
	a.until("its record is there", func() bool { return there.records().slot(id.worker).Node == id.uuid })
	a.stop()
	a.flags = without(a.flags, "--zk-replaced")
	a.start().ready().get(100)
	there.started().fails(1, `registration is frozen until`)
}
