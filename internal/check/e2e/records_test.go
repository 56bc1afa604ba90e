package e2e

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

// records reads and changes the cluster's records in ZooKeeper, like an administrator with a
// ZooKeeper shell.
type records struct {
	t  testing.TB
	zk *store.ZK
}

func (s *site) records() *records {
	s.t.Helper()
	zk, stop, err := connect(s.connect, patience)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(stop)
	return &records{s.t, zk}
}

// connect returns a connection to ZooKeeper, and a function that ends it.
func connect(addr string, timeout time.Duration) (zk *store.ZK, stop func(), err error) {
	zk, err = store.NewZK(store.ZKConfig{Connect: addr, Cluster: "default", SessionTimeout: 2 * time.Second,
		CallTimeout: timeout})
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

func (r *records) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// read parses the record into v unless v is nil, and reports whether the record exists.
func (r *records) read(path string, v any) (store.Stat, bool) {
	r.t.Helper()
	var data []byte
	var stat store.Stat
	var err error
	// Repeat this if the test has just ended the server.
	within(patience, func() bool {
		if err = r.zk.Sync(r.t.Context(), "/"); err == nil || errors.Is(err, store.ErrNoNode) {
			data, stat, err = r.zk.Get(r.t.Context(), path)
		}
		return !errors.Is(err, store.ErrUnreachable)
	})
	if errors.Is(err, store.ErrNoNode) {
		return stat, false
	}
	r.must(err)
	if v != nil {
		r.must(json.Unmarshal(data, v))
	}
	return stat, true
}

func slotPath(worker int) string { return fmt.Sprintf("/workers/%04d", worker) }

// slot returns a worker's record, or the zero Slot if there is none.
func (r *records) slot(worker int) (s coordinator.Slot) {
	r.t.Helper()
	r.read(slotPath(worker), &s)
	return s
}

func (r *records) cluster() (c coordinator.Cluster, ok bool) {
	r.t.Helper()
	_, ok = r.read("/cluster", &c)
	return c, ok
}

func (r *records) tickets() []string {
	r.t.Helper()
	names, err := r.zk.Children(r.t.Context(), "/tickets")
	r.must(err)
	return names
}
