package e2e

import (
	"flag"
	"os"
	"testing"

	"github.com/flaked/flaked/internal/zktest"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if at := os.Getenv(siegeEnv); at != "" {
		besiege(at)
		return 0
	}
	// These tests wait for other processes most of their time. A default: what
	// the command line says comes later and counts.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	defer removeBuilds()
	return zktest.Run(m)
}
