package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// The parent znode of the tickets is deleted while nodes run. Ticket numbers begin at 0 again, and
// lead new nodes to workers that are held.
func TestDeletedTicketsGiveNoWorkerTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	nodes := s.startedTogether(3)
	holder := map[int]*node{}
	for _, n := range nodes {
		holder[n.worker()] = n
	}
	records := s.records()
	join := func() *node {
		n := s.started().ready()
		if other := holder[n.worker()]; other != nil {
			t.Errorf("%s is worker %d, which is %s's", n.name, n.worker(), other.name)
		}
		holder[n.worker()] = n
		return n
	}

	records.remove("/tickets")
	_, err := records.zk.Create(t.Context(), "/tickets", nil, store.Persistent)
	records.must(err)
	join()
	// This time only the new node creates it again.
	records.remove("/tickets")
	join()

	// Nodes whose tickets are gone resume their workers.
	for _, crash := range []bool{false, true} {
		n := nodes[0]
		before := n.identity()
		n.get(100)
		if crash {
			n.kill()
		} else {
			n.stop()
		}
		if after := n.start().ready().identity(); after.worker != before.worker || after.uuid != before.uuid || after.term <= before.term {
			t.Errorf("%+v after %+v", after, before)
		}
	}
	if len(holder) != 5 {
		t.Errorf("%d workers of 5 nodes", len(holder))
	}
	for w, n := range holder {
		n.get(100)
		if now := n.worker(); now != w {
			t.Errorf("%s was worker %d and is %d", n.name, w, now)
		}
	}
}
