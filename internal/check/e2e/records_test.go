package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

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
	zk, err := store.NewZK(store.ZKConfig{
		Connect: s.connect, Cluster: "default", CallTimeout: patience,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- zk.Run(context.Background()) }()
	s.t.Cleanup(func() {
		_ = zk.Close() // fails if the test has ended ZooKeeper
		<-done
	})
	return &records{s.t, zk}
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
func livePath(worker int) string { return fmt.Sprintf("/live/%04d", worker) }

// slot returns a worker's record, or the zero Slot if there is none.
func (r *records) slot(worker int) (s coordinator.Slot) {
	r.t.Helper()
	r.read(slotPath(worker), &s)
	return s
}

// burn creates tickets and deletes them, as if nodes had come and gone.
func (r *records) burn(tickets int) {
	r.t.Helper()
	var hands errgroup.Group
	hands.SetLimit(64)
	for range tickets {
		hands.Go(func() error {
			name, err := r.zk.Create(r.t.Context(), "/tickets/n-", nil, store.PersistentSequential)
			if err != nil {
				return err
			}
			return r.zk.Delete(r.t.Context(), name, store.AnyVersion)
		})
	}
	r.must(hands.Wait())
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

// remove deletes a record and all records below it.
func (r *records) remove(path string) {
	r.t.Helper()
	names, err := r.zk.Children(r.t.Context(), path)
	r.must(err)
	for _, name := range names {
		r.remove(strings.TrimSuffix(path, "/") + "/" + name)
	}
	r.must(r.zk.Delete(r.t.Context(), path, store.AnyVersion))
}
