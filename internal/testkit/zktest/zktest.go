//go:build unix

package zktest

import (
	"os"
	"sync"
	"testing"
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

func start(t testing.TB, n int) *Ensemble {
	t.Helper()
	return startProgram(t, require(t), n)
}

func startProgram(t testing.TB, prog program, n int) *Ensemble {
	t.Helper()
	// Cleanups run in reverse order. TempDir comes before the cleanup below, so
	// that the directory is removed when no server writes into it any more.
	dir := t.TempDir()
	c, err := launch(prog, dir, n)
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

// shared is the server that the tests of this binary share. It is package-level
// state, because the server must outlive each single test.
var shared struct {
	mu      sync.Mutex
	running bool // Run is active, and will end the server
	dir     string
	cluster *cluster
	err     error // of the first start, which is not repeated
}

// Shared returns a single server that all tests of this binary share. The first
// call starts the server. Each test uses a Chroot of its own and must not break
// the server: Kill, Wipe and the like fail the test. Shared needs Main, or Run.
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

// Run is Main without the exit, for a TestMain that has more to do. It returns
// the exit code.
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
