package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/zkstore"
)

// sequences waits until a node has made /seq.
func (s *site) sequences() *records {
	s.t.Helper()
	r := s.records()
	if !within(patience, func() bool { _, ok := r.read("/seq", nil); return ok }) {
		s.t.Fatal("no node has made /seq")
	}
	return r
}

// A deletion and a creation wait until the nodes have followed each other.
func TestSeqDeletionAndCreationWaitForTheNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	nodes := s.startedTogether(2)
	s.sequences()
	s.command("seq", "create", "order").wants(t, 0, "created sequence order")
	s.command("seq", "delete", "order", "--confirm", "delete sequence order").wants(t, 0, "deleted sequence order")
	s.command("seq", "create", "order").wants(t, 0, "created sequence order")
	for _, n := range nodes {
		n.until("it gives a value", func() bool { _, ok := n.next("order"); return ok })
	}
}

// A node of a version without sequences runs: its slot does not say how far it has followed.
func TestSeqCreateRefusesWhileAnOldNodeRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.started().ready()
	r := s.sequences()
	old := (n.worker() + 1) % 4
	slot := r.slot(n.worker())
	slot.Followed, slot.Nonce, slot.Node, slot.Labels = coordinator.Followed{}, "old", "old", coordinator.Labels{Name: "old", Host: "h", Version: "v0.1"}
	r.write(slotPath(old), slot)
	r.raise(old)
	_, err := r.zk.Create(t.Context(), livePath(old), nil, zkstore.Ephemeral)
	r.must(err)

	refused := fmt.Sprintf("nodes of a version without named sequences run in this cluster, and could hide a loss of data: worker %d (old, host h, version v0.1). Upgrade or stop them. Nothing was changed.", old)
	s.command("seq", "create", "order").wants(t, 1, refused)
	if cl := r.fields("/cluster"); cl["highest_slot"] == nil || cl["needs"] != nil {
		t.Errorf("%v", cl)
	}
	// It is upgraded.
	slot.Followed = coordinator.Followed{Changes: 1, Epoch: 1}
	r.write(slotPath(old), slot)
	s.command("seq", "create", "order").wants(t, 0, "created sequence order")
	if cl := r.fields("/cluster"); cl["highest_slot"] != nil || cl["needs"] != "sequences" {
		t.Errorf("%v: older versions refuse a record without highest_slot", cl)
	}
	r.must(r.zk.Delete(t.Context(), livePath(old), zkstore.AnyVersion))

	// ZooKeeper loses the mark. The node restores it.
	r.write("/cluster", s.unmarked(r))
	if !within(patience, func() bool { return r.fields("/cluster")["needs"] == "sequences" }) {
		t.Errorf("%v", r.fields("/cluster"))
	}
}

// unmarked returns the cluster's record as it was before a sequence was created.
func (s *site) unmarked(r *records) map[string]any {
	cl := r.fields("/cluster")
	cl["highest_slot"] = cl["highest_worker"]
	delete(cl, "highest_worker")
	delete(cl, "needs")
	return cl
}

// raise makes a worker count as used.
func (r *records) raise(worker int) {
	r.t.Helper()
	cl := r.fields("/cluster")
	cl["highest_slot"] = max(cl["highest_slot"].(float64), float64(worker))
	r.write("/cluster", cl)
}

// fields returns a record as it stands in ZooKeeper.
func (r *records) fields(path string) (fields map[string]any) {
	r.t.Helper()
	r.read(path, &fields)
	return fields
}

// write writes a record, or creates it.
func (r *records) write(path string, v any) {
	r.t.Helper()
	data, err := json.Marshal(v)
	r.must(err)
	_, err = r.zk.Set(r.t.Context(), path, data, zkstore.AnyVersion)
	if errors.Is(err, zkstore.ErrNoNode) {
		_, err = r.zk.Create(r.t.Context(), path, data, zkstore.Persistent)
	}
	r.must(err)
}
