//go:build unix

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// Records reads and changes the cluster's records in ZooKeeper, like an administrator with a
// ZooKeeper shell.
type Records struct {
	T  testing.TB
	ZK *store.ZK
}

func (s *Site) Records() *Records {
	s.T.Helper()
	zk, stop, err := Connect(s.Connect, "", Patience)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(stop)
	return &Records{s.T, zk}
}

// SessionTimeout is how long ZooKeeper keeps a session of which it hears nothing, for the nodes and for Connect.
const SessionTimeout = 2 * time.Second

// Connect returns a connection to ZooKeeper, and a function that ends it. auth is user:password, or "".
func Connect(addr, auth string, timeout time.Duration) (zk *store.ZK, stop func(), err error) {
	zk, err = store.NewZK(store.ZKConfig{Connect: addr, Cluster: "default", SessionTimeout: SessionTimeout,
		CallTimeout: timeout, DigestAuth: auth})
	if err != nil {
		return nil, nil, err
	}
	done := make(chan error, 1)
	go func() { done <- zk.Run(context.Background()) }()
	return zk, func() {
		_ = zk.Close() // fails if the test has ended ZooKeeper
		<-done
	}, nil
}

func (r *Records) Must(err error) {
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}

// Read parses the record into v unless v is nil, and reports whether the record exists.
func (r *Records) Read(path string, v any) (store.Stat, bool) {
	r.T.Helper()
	var data []byte
	var stat store.Stat
	var err error
	// Repeat this if the test has just ended the server.
	Within(Patience, func() bool {
		if err = r.ZK.Sync(r.T.Context(), "/"); err == nil || errors.Is(err, store.ErrNoNode) {
			data, stat, err = r.ZK.Get(r.T.Context(), path)
		}
		return !errors.Is(err, store.ErrUnreachable)
	})
	if errors.Is(err, store.ErrNoNode) {
		return stat, false
	}
	r.Must(err)
	if v != nil {
		r.Must(json.Unmarshal(data, v))
	}
	return stat, true
}

func SlotPath(worker int) string { return fmt.Sprintf("/workers/%04d", worker) }

// Slot returns a worker's record, or the zero Slot if there is none.
func (r *Records) Slot(worker int) (s coordinator.Slot) {
	r.T.Helper()
	r.Read(SlotPath(worker), &s)
	return s
}

func (r *Records) Cluster() (c coordinator.Cluster, ok bool) {
	r.T.Helper()
	_, ok = r.Read("/cluster", &c)
	return c, ok
}

func (r *Records) Tickets() []string {
	r.T.Helper()
	names, err := r.ZK.Children(r.T.Context(), "/tickets")
	r.Must(err)
	return names
}
