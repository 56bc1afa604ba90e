// Package e2e tests the binary as its users run it, in named scenarios: see internal/testkit/harness.
//
// A scenario is here only if nothing below can show it: a limit or a promise with the shipped binary, the commands of
// the documents, and what needs real sockets, disks, clocks or signals. A fleet is a cluster of three nodes that are
// all asked for values of ordered sequences.
//
// Like all tests that use zktest, they run with FLAKED_TEST_ZK=require and are skipped without it.
package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

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
	defer harness.RemoveBuilds()
	return zktest.Run(m)
}
