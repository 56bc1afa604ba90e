// Package e2e tests the binary as its users run it, with real processes, sockets, state directories and
// ZooKeeper servers: named scenarios, and a random campaign (campaign_test.go).
//
// Both use one harness. A site is a cluster: ZooKeeper, the flags of its nodes, and the history of their IDs. A node
// is a state directory, the processes that run on it one after another, and its links to ZooKeeper
// (internal/testkit/faultnet). A test starts, stops, kills and freezes it, and cuts its links. A machine is a node of
// the campaign, which is started again whenever it ends. It has a wall clock of its own (ownclock) and, as root, a
// disk (faultdisk). A kind (faults_node_test.go, faults_zk_test.go) is one fault with what the node must do
// meanwhile.
//
// A load is a group of clients of a node. Every ID that they receive goes into the history, and every request that
// was not answered is a miss. The judge checks the history at the end of each test: no ID comes twice, and no ID of a
// worker is below one that a client had received from that worker before it asked. The campaign's rules add what each
// clock showed and when a node had to refuse. Requests for values of sequences go into a ledger, which is checked
// likewise, by internal/check/order. A fleet (ordered_load_test.go) is a cluster of three nodes that are all asked for
// values of ordered sequences.
//
// A scenario is here only if nothing below can show it: a limit or a promise with the shipped binary, the commands of
// the documents, and what needs real sockets, disks, clocks or signals.
//
// Like all tests that use zktest, they run with FLAKED_TEST_ZK=require and are skipped without it.
package e2e

import (
	"flag"
	"os"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	// These tests mostly wait for other processes, so more of them run at a time than there
	// are cores. The value is a default: the command line is parsed later and overrides it.
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	defer removeBuilds()
	return zktest.Run(m)
}
