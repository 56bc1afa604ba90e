package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
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
