package zktest

import (
	"os"
	"sync"
	"testing"

	"github.com/flaked/flaked/internal/ownclock"
)

// Single starts one standalone server and waits until it serves. It ends with
// the test.
func Single(t testing.TB) *Ensemble {
	t.Helper()
	return start(t, 1)
}

// Three starts an ensemble of three and waits until it serves. It ends with
// the test.
func Three(t testing.TB) *Ensemble {
	t.Helper()
	return start(t, 3)
}

// SingleOn is Single with the server on a wall clock of its own, by which it
// stamps what is written. The clock is the server's over kills and restarts;
// others may be on it too, as on one machine.
func SingleOn(t testing.TB, clock *ownclock.Clock) *Ensemble {
	t.Helper()
	return start(t, 1, clock)
}

// ThreeOn is Three with a wall clock for each server. It is the leader's that
// counts.
func ThreeOn(t testing.TB, clocks [3]*ownclock.Clock) *Ensemble {
	t.Helper()
	return start(t, 3, clocks[:]...)
}

func start(t testing.TB, n int, clocks ...*ownclock.Clock) *Ensemble {
	t.Helper()
	prog := require(t)
	if len(clocks) > 0 {
		ownclock.Require(t)
	}
	// Before the cleanup below is registered, so that it runs after it: the
	// directory goes when nobody writes into it any more.
	dir := t.TempDir()
	c, err := launch(prog, dir, n, clocks...)
	if err != nil {
		t.Fatalf("zktest: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.tail())
		}
		c.close()
	})
	return &Ensemble{tb: t, cluster: c}
}

// shared is the server of this test binary. Package-level state, because its
// life is that of the binary: there is nothing shorter to hang it on.
var shared struct {
	mu      sync.Mutex
	running bool // Run is on the stack, so somebody will end the server
	dir     string
	cluster *cluster
	err     error // what came of the first start; there is no second
}

// Shared returns a single server that all tests of this binary share, started
// by the first that asks. Tests keep apart by Chroot, and leave the server as
// it is: the methods that break things fail the test. It needs Main, or Run.
func Shared(t testing.TB) *Ensemble {
	t.Helper()
	prog := require(t)

	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.running {
		t.Fatal("zktest: Shared needs: func TestMain(m *testing.M) { zktest.Main(m) }")
	}
	if shared.cluster == nil && shared.err == nil {
		shared.dir, shared.err = os.MkdirTemp("", "flaked-zktest-")
		if shared.err == nil {
			shared.cluster, shared.err = launch(prog, shared.dir, 1)
		}
	}
	if shared.err != nil {
		t.Fatalf("zktest: the shared server: %v", shared.err)
	}

	c := shared.cluster
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.tail())
		}
	})
	return &Ensemble{tb: t, cluster: c, shared: true}
}

// Main runs the tests, ends the shared server and exits: the whole body of a
// TestMain in packages that use Shared.
func Main(m interface{ Run() int }) {
	os.Exit(Run(m))
}

// Run is Main without the exit, for a TestMain that has more to do.
func Run(m interface{ Run() int }) int {
	shared.mu.Lock()
	shared.running = true
	shared.mu.Unlock()

	defer func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.running = false
		if shared.cluster != nil {
			shared.cluster.close()
			shared.cluster = nil
		}
		if shared.dir != "" {
			os.RemoveAll(shared.dir)
		}
	}()
	return m.Run()
}
