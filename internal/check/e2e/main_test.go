// Package e2e tests the shipped binary as its users run it, with real processes, sockets, state
// directories and ZooKeeper servers. It has the scenarios of the uniqueness contract that need a
// process, a disk or an ensemble. Everything else is tested in its own package.
//
// Every ID that a test receives goes into a history, and the history is checked at the end of
// the test. No ID may occur twice. No ID of a worker may be below one that a client had received
// from that worker before asking for it.
//
// Like all tests that use zktest, they run with FLAKED_TEST_ZK=require and are skipped without
// it.
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
