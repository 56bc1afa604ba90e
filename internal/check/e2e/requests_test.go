package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// requests counts the requests that ZooKeeper receives while do runs, and fails the test if there are more than most,
// besides the pings of some sessions and the question.
func requests(t *testing.T, ens *zktest.Ensemble, what string, sessions int, do func() (most int)) {
	t.Helper()
	began, before := time.Now(), ens.Received()
	most := do()
	n := ens.Received() - before
	most += 1 + sessions*(1+int(time.Since(began)/(2*time.Second))) // each session pings every 2 s
	t.Logf("%s: %d requests in %s, at most %d are promised", what, n, time.Since(began), most)
	if n > most {
		t.Errorf("%s: %d requests, at most %d are promised", what, n, most)
	}
}

// docs/performance.md promises these requests to ZooKeeper. The server counts them.
func TestRequestsToZooKeeper(t *testing.T) {
	t.Parallel()
	ens := zktest.Single(t)
	s := harness.NewSite(t, ens.Addr(), "--heartbeat", "500ms", "--confirm-time", "2s")
	var nodes []*harness.Node
	for range 3 {
		nodes = append(nodes, s.Node().Start())
	}
	for _, n := range nodes {
		n.Ready()
	}
	strict, records := s.Sequence("invoice", "--mode", "strict"), s.Records()
	for _, n := range nodes {
		strict.From(n, 1) // its peers have given their word
	}
	heartbeats := func() (sum int) {
		for _, n := range nodes {
			slot, _ := records.Read(harness.SlotPath(n.Worker()), nil)
			sum += int(slot.Version)
		}
		return sum
	}
	<-time.After(3 * time.Second) // until all have listed the live workers
	// beats waits for some time, and returns how many heartbeats the nodes may have made in it.
	beats := func(d time.Duration) int {
		before := heartbeats()
		<-time.After(d)
		return heartbeats() - before + 2*len(nodes)
	}
	requests(t, ens, "heartbeats of three nodes", 4, func() int {
		return 3*beats(4*time.Second) + 2*2*len(nodes) // three of each, and two of each read of the test
	})
	requests(t, ens, "values of a strict sequence", 4, func() int {
		before := strict.Highest()
		strict.From(nodes[0], 20)
		return int(strict.Highest()-before) + 3*len(nodes) + 3 // a request of each, beside the heartbeats
	})
	requests(t, ens, "flaked status", 5, func() int {
		s.Command("status")
		return 6 + 3*len(nodes)
	})
	requests(t, ens, "a start", 5, func() int {
		before := heartbeats()
		s.Node().Start().Ready()
		// It reports every sixth of a second, and reads its peers' records each time, until they have given their word.
		return 20 + 5*12 + 3*(heartbeats()-before+len(nodes)) + 2*2*len(nodes)
	})
}
