package store

import (
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// noLeaks fails a test that leaves goroutines. Call it first.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// newZK starts a store with the test's log, and closes it when the test ends.
func newZK(t *testing.T, cfg ZKConfig) *ZK {
	t.Helper()
	if cfg.Cluster == "" {
		cfg.Cluster = "test"
	}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{
		Name: "zk", Level: hclog.Debug, Output: t.Output(), TimeFormat: "05.000",
	})
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

// newLink returns a link between a client and a ZooKeeper. A nil config means plain TCP.
func newLink(t *testing.T, target string, config *tls.Config) *faultnet.Link {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	l := faultnet.Serve(ln, target)
	t.Cleanup(l.Close)
	return l
}

// endSession makes the server close a client's session as if it had expired.
func endSession(t *testing.T, l *faultnet.Link) {
	t.Helper()
	if err := l.ExpireSession(); err != nil {
		t.Fatal(err)
	}
}

// eventually polls until f returns nil. It fails the test if that takes longer than within.
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

// zkWorld returns a world with its own chroot in a shared ZooKeeper. Each client has its
// own link.
func zkWorld(t *testing.T) world {
	connect, err := ParseConnect(zktest.Chroot(t, zktest.Shared(t)))
	if err != nil {
		t.Fatal(err)
	}
	links := make(map[Store]*faultnet.Link)
	return world{
		open: func(t *testing.T) Store {
			link := newLink(t, connect.Hosts[0], nil)
			z := newZK(t, ZKConfig{
				Connect:        link.Addr() + connect.Chroot,
				SessionTimeout: 5 * time.Second,
				CallTimeout:    10 * time.Second,
			})
			links[z] = link
			return z
		},
		expire: func(t *testing.T, s Store) {
			old := s.SessionID()
			endSession(t, links[s])
			eventually(t, 10*time.Second, func() error {
				if id := s.SessionID(); id == 0 || id == old {
					return fmt.Errorf("session %#x", id)
				}
				return nil
			})
		},
	}
}
