// Package campaign attacks a cluster of five nodes and three ZooKeeper servers at random, while clients ask for IDs and
// values: see docs/testing.md.
//
// A machine is a node that is started again whenever it ends. It has a wall clock of its own (ownclock) and, as root, a
// disk (faultdisk). A kind is one fault with what the node must do meanwhile. At the end a judge goes through all
// answers and all misses. To the rules of internal/testkit/harness the campaign adds what each clock showed, and when a
// node had to refuse.
package campaign

import (
	"os"
	"testing"

	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer harness.RemoveBuilds()
	return zktest.Run(m)
}
