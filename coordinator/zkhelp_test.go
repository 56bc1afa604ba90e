package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/flaked/flaked/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// noLeaks fails a test that leaves goroutines. Call it first.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// newZK starts a store with the test's log, and closes it in the end.
func newZK(t *testing.T, cfg ZKConfig) *ZK {
	t.Helper()
	if cfg.Cluster == "" {
		cfg.Cluster = "test"
	}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Name: "zk", Level: hclog.Debug, Output: t.Output(), TimeFormat: "05.000"})
	z, err := NewZK(cfg)
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

// eventually polls until f has nothing to object.
func eventually(t *testing.T, within time.Duration, f func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after %v still: %v", within, err)
		case <-tick.C:
		}
	}
}

// zkWorld is a chroot of its own in a shared ZooKeeper, each client behind a
// proxy of its own.
func zkWorld(t *testing.T) world {
	connect, err := ParseConnect(zktest.Chroot(t, zktest.Shared(t)))
	if err != nil {
		t.Fatal(err)
	}
	proxies := make(map[Store]*proxy)
	return world{
		open: func(t *testing.T) Store {
			p := newProxy(t, connect.Hosts[0], nil)
			z := newZK(t, ZKConfig{
				Connect:        p.addr() + connect.Chroot,
				SessionTimeout: 5 * time.Second,
				CallTimeout:    10 * time.Second,
			})
			proxies[z] = p
			return z
		},
		expire: func(t *testing.T, s Store) {
			old := s.SessionID()
			proxies[s].endSession(t)
			eventually(t, 10*time.Second, func() error {
				if id := s.SessionID(); id == 0 || id == old {
					return fmt.Errorf("session %#x", id)
				}
				return nil
			})
		},
	}
}
