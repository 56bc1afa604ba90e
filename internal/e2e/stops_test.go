package e2e

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/localcache"
	flaked "github.com/flaked/flaked/node"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

// reserve sets the reserved bound of a stopped node to m, in its state directory. This is the
// state after kill -9 and a clock that went back.
func (n *node) reserve(m int64) {
	t := n.site.t
	t.Helper()
	cache, err := localcache.Open(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	r, err := flaked.DecodeRecord(cache.Load().Record)
	if err != nil {
		t.Fatal(err)
	}
	r.Claim.ReservedUntil, r.Stopped = m, false
	r.Claim.LeaseUntil = max(r.Claim.LeaseUntil, m)
	kept, err := r.Encode()
	if err == nil {
		_, err = cache.Save(kept)
	}
	if err != nil {
		t.Fatal(err)
	}
}

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

// A node is stopped or killed while it waits until the clock has reached the reserved bound of its
// predecessor. The bound is not lowered.
func TestStopWhileWaitingKeepsTheBound(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	records := s.records()
	n, id := s.confirmed()
	bound := time.Now().Add(8 * time.Second).UnixMilli() // above 10 s the start is refused
	n.reserve(bound)
	for _, end := range []func(){n.stop, n.kill, n.stop} {
		n.start().state("waiting")
		n.refuses("-NOTREADY")
		end()
		if r := n.stored().Record; r.MMs < bound {
			t.Errorf("M is %d below what the predecessor had reserved", bound-r.MMs)
		}
		slot := records.slot(id.worker)
		if slot.LeaseUntil < bound || slot.Stopped && slot.StoppedAt < bound {
			t.Errorf("the slot's bounds are H %d and M %d, what the predecessor reserved is %d", slot.LeaseUntil, slot.StoppedAt, bound)
		}
	}
	n.start().firstAfter(bound)
	if now := n.identity(); now.worker != id.worker || now.uuid != id.uuid {
		t.Errorf("%+v, was %+v", now, id)
	}
}

// A node releases its worker while it waits for that bound. The next holder begins above the
// bound.
func TestReleaseWhileWaitingKeepsTheBound(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--release-on-exit")
	records := s.records()
	n := s.started().ready()
	n.get(10)
	id := n.identity()
	n.kill()
	bound := time.Now().Add(6 * time.Second).UnixMilli()
	n.reserve(bound)
	n.start().state("waiting")
	n.stop()
	n.hasNoState()
	slot := records.slot(id.worker)
	if !slot.Released || slot.LeaseUntil < bound {
		t.Errorf("the slot given back is %+v, what was reserved is %d", slot, bound)
	}
	s.next(id.worker).firstAfter(bound)
}

// next starts a new node whose ticket leads to the slot, and waits until it has acquired that
// worker.
func (s *site) next(slot int) *node {
	s.t.Helper()
	records := s.records()
	name, err := records.zk.Create(s.t.Context(), "/tickets/n-", nil, zkstore.PersistentSequential)
	records.must(err)
	records.must(records.zk.Delete(s.t.Context(), name, zkstore.AnyVersion))
	number, err := strconv.Atoi(strings.TrimPrefix(name, "/tickets/n-"))
	records.must(err)
	records.burn((slot + 1024 - (number+1)%1024) % 1024)
	n := s.started()
	n.until("it has a worker", func() bool { id, err := n.tryIdentity(); return err == nil && id.worker >= 0 })
	if w := n.worker(); w != slot {
		s.t.Fatalf("the newcomer is worker %d, not %d", w, slot)
	}
	return n
}

// A node acquires a slot whose lease bound is some seconds ahead, and stops before it issues an
// ID. The bound is not lowered.
func TestStopAfterTakeOverKeepsTheBound(t *testing.T) {
	t.Parallel()
	for _, release := range []bool{false, true} {
		name := "kept"
		var flags []string
		if release {
			name, flags = "released", []string{"--release-on-exit"}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), flags...)
			records := s.records()
			first := s.started("--release-on-exit").ready()
			first.get(10)
			slot := first.worker()
			first.stop()
			bound := time.Now().Add(9 * time.Second).UnixMilli() // from 10 s on, not free
			records.change(slot, func(s *coordinator.Slot) { s.LeaseUntil = bound })

			n := s.next(slot)
			n.until("it has taken the slot", func() bool { return records.slot(slot).Term == 2 })
			n.stop()
			now := records.slot(slot)
			if now.LeaseUntil < bound || now.Stopped && now.StoppedAt < bound || now.Released != release {
				t.Errorf("the slot is %+v, its former holder's bound was %d", now, bound)
			}
			if !release {
				if r := n.stored().Record; r.MMs < bound || r.LoMs < bound {
					t.Errorf("stored are lo %d and M %d, the former holder's bound was %d", r.LoMs, r.MMs, bound)
				}
				n.start().firstAfter(bound)
				return
			}
			n = s.next(slot)
			n.until("it has taken the slot", func() bool { return records.slot(slot).Term == 3 })
			n.stop()
			if now := records.slot(slot); now.LeaseUntil < bound {
				t.Errorf("the slot's bound fell to %d, its first holder's was %d", now.LeaseUntil, bound)
			}
			s.next(slot).firstAfter(bound)
		})
	}
}

// A node starts and stops without issuing IDs in between. Its bounds never go down.
func TestBoundsNeverFallOverEmptyRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n, id := s.confirmed()
	records := s.records()
	last := n.stored().Record.MMs
	for range 4 {
		n.start().ready()
		n.stop()
		r := n.stored().Record
		if slot := records.slot(id.worker); r.MMs < last || slot.StoppedAt < last || !slot.Stopped {
			t.Errorf("M is %d, and %d in ZooKeeper, after %d", r.MMs, slot.StoppedAt, last)
		}
		if ahead := r.MMs - time.Now().UnixMilli(); ahead > 0 {
			t.Errorf("a clean stop leaves M %d ms ahead", ahead)
		}
		last = r.MMs
	}
	n.start().firstAfter(last)
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
