package coordinator

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// newZK starts a store that logs to the test. The store is closed when the test ends.
func newZK(t *testing.T, cfg store.ZKConfig) *store.ZK {
	t.Helper()
	cfg.Cluster = "test"
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Name: "zk", Level: hclog.Debug, Output: t.Output(),
		TimeFormat: "05.000"})
	z, err := store.NewZK(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- z.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := z.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return z
}

// inMemory returns a function that opens clients of one server in memory.
func inMemory(t *testing.T) (open func() store.Store) {
	m := store.NewMem(nil)
	return func() store.Store {
		s := m.Session()
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

// inZooKeeper returns a function that opens clients of one chroot in a real ZooKeeper.
func inZooKeeper(t *testing.T) (open func() store.Store) {
	connect := zktest.Chroot(t, zktest.Shared(t))
	return func() store.Store {
		return newZK(t, store.ZKConfig{Connect: connect, SessionTimeout: 5 * time.Second,
			CallTimeout: 10 * time.Second})
	}
}
