package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Fifty nodes start at once with an empty ZooKeeper. The first one creates the cluster, and each
// gets a worker of its own.
func TestFiftyNodesGetFiftyWorkers(t *testing.T) {
	// It is not parallel, and has a ZooKeeper of its own: fifty starts take both cores for seconds, and the
	// ZooKeepers of tests beside it would not answer in time.
	s := newSite(t, zktest.Chroot(t, zktest.Single(t)), "--heartbeat", "500ms", "--confirm-time", "1s")
	const count = 50
	holder := map[int]string{}
	for _, n := range s.startedTogether(count) {
		n.get(1)
		n.get(100)
		w := n.worker()
		if other, taken := holder[w]; taken {
			t.Errorf("%s and %s are both worker %d", other, n.name, w)
		}
		holder[w] = n.name
	}
	if got := len(s.records().tickets()); got != count {
		t.Errorf("there are %d tickets of %d nodes", got, count)
	}
	status, code := s.status()
	if code != 0 || status.Summary.Live != count || len(status.Workers) != count {
		t.Errorf("status: exit %d, %d live, %d workers; %q", code, status.Summary.Live, len(status.Workers), status.Summary.Problems)
	}
	for _, w := range status.Workers {
		if holder[w.Worker] != w.Name {
			t.Errorf("status says that worker %d is %s, and it is %s", w.Worker, w.Name, holder[w.Worker])
		}
	}
}
