package e2e

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/sequence"
)

// values collects the values of one sequence from several connections.
type values struct {
	t     testing.TB
	mu    sync.Mutex
	seen  map[int64]bool
	twice int
}

// add records a value. A value that comes twice is an error.
func (s *values) add(v int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[v] {
		if s.twice++; s.twice <= 3 { // a few say enough
			s.t.Errorf("%d is issued twice", v)
		}
	}
	s.seen[v] = true
}

// next asks a node for a value of a sequence. ok is false if the node refuses.
func (n *node) next(name string) (v int64, ok bool) {
	line, err := n.ask("NEXT " + name)
	if err != nil {
		return 0, false
	}
	v, err = strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return v, err == nil
}

// create creates a sequence by the store, once a node has made /seq.
func (s *site) create(name string) {
	s.t.Helper()
	o := seq.Operator{Store: s.records().zk, By: "test"}
	d := seq.Definition{
		Name: name, Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript},
		Settings: seq.Settings{Block: 32, SupplyMs: 900_000, HoldMs: 86_400_000, Ceiling: 1_000_000, HardCeiling: 1_000_000},
	}
	var err error
	if !zktest.Poll(20*time.Second, func() bool { _, err = o.Create(context.Background(), d); return err == nil }) {
		s.t.Fatalf("creating %s: %v", name, err)
	}
}

// Leaf #15: 27 of a block of 2,000 were used, and after a restart it went on at 2,001. Here a clean stop gives back
// all that is left, also of the spare block, which the node took when a tenth of the first 32 was used. kill -9 gives back
// nothing.
func TestCleanStopGivesTheRestBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.started().ready()
	s.create("order")
	var last int64
	take := func() int64 {
		n.until("it gives a value", func() bool {
			v, ok := n.next("order")
			last = v
			return ok
		})
		return last
	}
	for range 27 {
		take()
	}
	n.stop()
	n.start().ready()
	if v := take(); v != 28 {
		t.Errorf("%d after 27, and a clean stop", v)
	}
	before := last
	n.kill()
	n.start().ready()
	if v := take(); v <= before {
		t.Errorf("%d after %d, and kill -9", v, before)
	}
}

// sequences waits until a node has made /seq.
func (s *site) sequences() *records {
	s.t.Helper()
	r := s.records()
	if !within(patience, func() bool { _, ok := r.read("/seq", nil); return ok }) {
		s.t.Fatal("no node has made /seq")
	}
	return r
}
