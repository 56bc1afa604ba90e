//go:build unix

// Package zkstore runs a test on both stores: one in memory, and a real ZooKeeper. So the simulations, which play on
// the first, hold for the second.
package zkstore

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Both runs test in parallel on each of the two. open opens clients of one server, which end with the test.
func Both(t *testing.T, test func(t *testing.T, open func() store.Store)) {
	t.Run("Mem", func(t *testing.T) {
		t.Parallel()
		m := memzk.New(nil)
		test(t, func() store.Store {
			s := m.Session()
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		t.Parallel()
		connect := zktest.Chroot(t, zktest.Shared(t))
		test(t, func() store.Store { return inZooKeeper(t, connect) })
	})
}

func inZooKeeper(t *testing.T, connect string) store.Store {
	z, err := store.NewZK(store.ZKConfig{
		Connect: connect, Cluster: "test", SessionTimeout: 5 * time.Second, CallTimeout: 10 * time.Second,
		Logger: hclog.New(&hclog.LoggerOptions{Name: "zk", Level: hclog.Warn, Output: t.Output()}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := z.Run(t.Context()); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		if err := z.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		running.Wait()
	})
	return z
}
