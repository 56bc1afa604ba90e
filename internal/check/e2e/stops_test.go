package e2e

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// confirmed starts a node, waits until it serves, and stops it. It returns the node and its
// identity.
func (s *site) confirmed(flags ...string) (*node, identity) {
	n := s.started(flags...).ready()
	n.get(10)
	id := n.identity()
	n.stop()
	return n, id
}

// firstAfter waits until the node is ready, and fails the test if an ID has a timestamp below
// bound.
func (n *node) firstAfter(bound int64) {
	n.site.t.Helper()
	for _, id := range n.ready().get(100) {
		f, err := worker.Leaf().Decode(id)
		if err != nil {
			n.site.t.Fatal(err)
		}
		if at := worker.Leaf().Start(f.Tick); at < bound {
			n.site.t.Errorf("%s: %s is %d ms below what a predecessor had reserved", n.name, n.site.ids.describe(id), bound-at)
			return
		}
	}
}

// A node is stopped or killed at a random moment of its start. It keeps its worker.
func TestStopDuringAStartKeepsTheWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "100ms")
	n, id := s.confirmed()
	for round := range 40 {
		n.start()
		moment := time.NewTimer(time.Duration(rand.IntN(200)) * time.Millisecond)
		if round%5 == 4 {
			n.ready().get(100)
		}
		<-moment.C
		if round%3 == 0 {
			n.kill()
		} else {
			n.proc.signal(syscall.SIGTERM)
			if code := n.proc.exit(); code > 0 {
				t.Errorf("round %d: exit %d after SIGTERM\n%s", round, code, n.proc.log())
			}
		}
		r := n.stored().Record
		if r == nil || r.Node != id.uuid || r.Worker != id.worker {
			t.Fatalf("round %d: the state is %+v, the node was %+v", round, r, id)
		}
	}
	if now := n.start().ready().identity(); now.worker != id.worker || now.uuid != id.uuid {
		t.Errorf("%+v, was %+v", now, id)
	}
	n.get(100)
}
