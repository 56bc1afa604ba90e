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
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	defer removeBuilds()
	return zktest.Run(m)
}
