package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// requests counts the requests that ZooKeeper receives while do runs, and fails the test if there are more than do
// returns, besides the heartbeats of some nodes, the pings of their sessions and one other's, and the question.
// beats returns how many heartbeats these nodes have made since they have their workers.
func requests(t *testing.T, ens *zktest.Ensemble, what string, nodes int, beats func() int, do func() (most int)) {
	t.Helper()
	beatsBefore, before, began := beats(), ens.Received(), time.Now()
	most := do()
	n, elapsed := ens.Received()-before, time.Since(began)
	most += 3*(beats()-beatsBefore) + 2*nodes                       // three of each heartbeat, and the first two of one that goes on
	most += 1 + (nodes+1)*(1+int(3*elapsed/harness.SessionTimeout)) // a session pings three times in its timeout
	t.Logf("%s: %d requests in %s, at most %d are promised", what, n, elapsed, most)
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
	beats := func() (sum int) {
		for _, n := range nodes {
			slot, _ := records.Read(harness.SlotPath(n.Worker()), nil)
			sum += int(slot.Version)
		}
		return sum
	}
	<-time.After(3 * time.Second) // until all have listed the live workers
	requests(t, ens, "heartbeats of three nodes", 3, beats, func() int {
		<-time.After(4 * time.Second)
		return 0
	})
	requests(t, ens, "values of a strict sequence", 3, beats, func() int {
		before := strict.Highest()
		strict.From(nodes[0], 20)
		return int(strict.Highest()-before) + 3*2 // a request of each, and a part of a round at each node
	})
	requests(t, ens, "flaked status", 3, beats, func() int {
		s.Command("status")
		return 11
	})
	requests(t, ens, "a start", 3, beats, func() int {
		n := s.Node().Start()
		n.Ready()
		nodes = append(nodes, n) // its first heartbeats count as the others'
		return 20 + 2*12         // it reads its peers' records with each, until they have given their word
	})
}
