package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/zkstore"
)

// The tests in this file depend on how a real ZooKeeper behaves, and run against one.

// server is one chroot of a real ZooKeeper, with a cluster in it.
type server struct {
	*testing.T
	connect string
	admin   *zkstore.ZK
	cl      Cluster
}

func newServer(t *testing.T, connect string, slots int) *server {
	t.Helper()
	s := &server{T: t, connect: connect}
	s.admin = s.open()
	s.cl = Cluster{UUID: t.Name(), Slots: slots, LeaseMs: millis(labW), ConfirmMs: 50}
	s.init()
	return s
}

func (s *server) init() {
	s.Helper()
	eventually(s.T, 30*time.Second, func() error {
		_, err := CreateCluster(s.Context(), s.admin, s.cl)
		return err
	})
}

func (s *server) open() *zkstore.ZK {
	return newZK(s.T, zkstore.ZKConfig{Connect: s.connect, SessionTimeout: time.Second, CallTimeout: 5 * time.Second})
}

// peer is a node: a claim, a ledger, and a coordinator in a real ZooKeeper.
type peer struct {
	*server
	store *zkstore.ZK
	co    *Coordinator
	disk  *disk
	claim Claim
}

func (s *server) peer(name string, store *zkstore.ZK) *peer {
	s.Helper()
	p := &peer{server: s, store: store, disk: &disk{}}
	p.boot()
	p.claim.Node = name
	return p
}

func (p *peer) boot() {
	p.Helper()
	co, err := New(Config{Store: p.store, Now: p.now, Ledger: p.disk, Interval: 50 * time.Millisecond})
	if err != nil {
		p.Fatal(err)
	}
	co.Join(p.cl)
	p.co = co
}

func (p *peer) now() int64 { return time.Now().UnixMilli() }

func near(own Reading, _ []Reading) error {
	if d := own.Sent - own.Stamp; d > 5000 || d < -5000 {
		return fmt.Errorf("the clock is off by %dms", d)
	}
	return nil
}

func (p *peer) register(ctx context.Context) (Grant, error) {
	cl, err := ReadCluster(ctx, p.co.Store)
	if err != nil {
		return Grant{}, err
	}
	g, err := p.co.Register(ctx, cl, p.claim, labLease, near)
	p.claim = g.Claim
	return g, err
}

func (p *peer) beat() (HeartbeatResult, error) {
	b, err := p.co.Heartbeat(p.Context(), p.claim, Report{Lease: labLease, Generation: p.disk.generation, Confirm: true})
	if err != nil {
		return b, err
	}
	p.claim = b.Claim
	if b.Confirmed {
		p.claim.Confirmed, p.claim.LeaseUntil = true, max(p.claim.LeaseUntil, b.LeaseUntil)
		if _, err := p.disk.Save(p.claim); err != nil {
			return b, err
		}
	}
	return b, p.co.CreateLiveLock(p.Context(), p.claim)
}

func (p *peer) mustBeat() HeartbeatResult {
	p.Helper()
	b, err := p.beat()
	if err != nil || !b.Confirmed {
		p.Fatalf("%+v, %v", b, err)
	}
	return b
}

// beatAgain repeats a heartbeat until ZooKeeper answers. It fails the test after 30 s.
func (p *peer) beatAgain() (b HeartbeatResult) {
	p.Helper()
	eventually(p.T, 30*time.Second, func() (err error) {
		b, err = p.beat()
		return err
	})
	return b
}

// serving registers and confirms a peer. The peer does not wait for the confirming time.
func (s *server) serving(name string, store *zkstore.ZK) *peer {
	s.Helper()
	p := s.peer(name, store)
	if _, err := p.register(s.Context()); err != nil {
		s.Fatal(err)
	}
	p.mustBeat()
	return p
}

// get reads a record. While ZooKeeper cannot be reached, it tries again, for at most 30 s.
func (s *server) get(path string) (data []byte, stat zkstore.Stat) {
	s.Helper()
	eventually(s.T, 30*time.Second, func() (err error) {
		data, stat, err = s.admin.Get(s.Context(), path)
		if err != nil && !errors.Is(err, zkstore.ErrUnreachable) {
			s.Fatal(err)
		}
		return err
	})
	return data, stat
}

func (s *server) slot(w int) Slot {
	s.Helper()
	data, _ := s.get(slotPath(w))
	return parseSlot(data)
}

func (s *server) tickets() int {
	s.Helper()
	if err := s.admin.Sync(s.Context(), ticketsPath); err != nil {
		s.Fatal(err)
	}
	names, err := s.admin.Children(s.Context(), ticketsPath)
	if err != nil {
		s.Fatal(err)
	}
	return len(names)
}

// burn creates n tickets and deletes them.
func (s *server) burn(n int) {
	s.Helper()
	group, ctx := errgroup.WithContext(s.Context())
	group.SetLimit(64)
	for range n {
		group.Go(func() error {
			name, err := s.admin.Create(ctx, ticketPrefix, nil, zkstore.PersistentSequential)
			if err == nil {
				err = s.admin.Delete(ctx, name, zkstore.AnyVersion)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
}

// Fifty nodes start at once. They get the first fifty workers, one each.
func TestFiftyNodesGetFiftyWorkers(t *testing.T) {
	s := newServer(t, zktest.Chroot(t, zktest.Shared(t)), 1024)
	const n = 50
	var peers []*peer
	for i := range n {
		peers = append(peers, s.peer(fmt.Sprint("node-", i), s.open()))
	}
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() {
			if _, err := p.register(t.Context()); err != nil {
				t.Error(err)
				return
			}
			if b, err := p.beat(); err != nil || !b.Confirmed {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
	wg.Wait()
	seen := make(map[int]bool)
	for _, p := range peers {
		if seen[p.claim.Worker] || p.claim.Worker >= n || p.claim.Term != 1 || s.slot(p.claim.Worker).Node != p.claim.Node {
			t.Errorf("%+v, %+v", p.claim, s.slot(p.claim.Worker))
		}
		seen[p.claim.Worker] = true
	}
	if got := s.tickets(); got != n {
		t.Errorf("%d tickets", got)
	}
	readings, err := peers[0].co.Peers(t.Context(), peers[0].claim.Worker)
	if err != nil || len(readings) == 0 {
		t.Errorf("%v, %v", readings, err)
	}
	for _, r := range readings {
		if near(r, nil) != nil {
			t.Errorf("%+v", r)
		}
	}
}

// After 1100 used tickets, 1024 nodes take all slots of Leaf's layout. The next node is refused
// and leaves no ticket. A released slot goes to a new node.
func TestThousandSlots(t *testing.T) {
	s := newServer(t, zktest.Chroot(t, zktest.Shared(t)), 1024)
	s.burn(1100)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(32)
	workers := make([]*peer, s.cl.Slots)
	var mu sync.Mutex
	for i := range s.cl.Slots {
		p := s.peer(fmt.Sprint("node-", i), s.admin)
		group.Go(func() error {
			if _, err := p.register(ctx); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if workers[p.claim.Worker] != nil {
				return fmt.Errorf("worker %d was given twice", p.claim.Worker)
			}
			workers[p.claim.Worker] = p
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	before := s.tickets()
	_, err := s.peer("one too many", s.admin).register(t.Context())
	full := wantErrAs[*FullError](t, err)
	if full.Disconnected != 1024 || full.NextFree == 0 || s.tickets() != before {
		t.Errorf("%v, %d tickets before and %d after", full, before, s.tickets())
	}

	leaver := workers[500]
	end := leaver.claim.Floor + 17
	if err := leaver.co.Release(t.Context(), leaver.claim, end); err != nil {
		t.Fatal(err)
	}
	next := s.serving("next", s.admin)
	if next.claim.Worker != 500 || next.claim.Term != 2 || next.claim.Floor < end {
		t.Errorf("%+v", next.claim)
	}
}

// The parent of the tickets is deleted and created again, so ticket numbers begin again. No
// worker is held twice.
func TestTicketParentMadeAgain(t *testing.T) {
	s := newServer(t, zktest.Chroot(t, zktest.Shared(t)), 4)
	a, b := s.serving("a", s.admin), s.serving("b", s.admin)
	for _, path := range []string{a.claim.Ticket, b.claim.Ticket, ticketsPath} {
		if err := s.admin.Delete(t.Context(), path, zkstore.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	c := s.serving("c", s.admin) // by ticket 0 again
	if c.claim.Ticket != a.claim.Ticket || c.claim.Worker != 2 {
		t.Errorf("%+v", c.claim)
	}
	a.boot()
	g, err := a.co.Resume(t.Context(), a.disk.claim, labLease, near)
	if err != nil || g.Claim.Worker != 0 || g.Claim.Ticket == c.claim.Ticket {
		t.Errorf("%+v, %v", g, err)
	}
	d := s.serving("d", s.admin)
	if d.claim.Worker != 3 || s.tickets() != 3 {
		t.Errorf("%+v, %d tickets", d.claim, s.tickets())
	}
}

func TestNodeRestartsStopsAndReleases(t *testing.T) {
	s := newServer(t, zktest.Chroot(t, zktest.Shared(t)), 4)
	store := s.open()
	a := s.serving("a", store)
	h := a.claim.LeaseUntil
	for range 5 {
		if b := a.mustBeat(); b.LeaseUntil < h || near(b.Clock, nil) != nil || b.Clock.Acked < b.Clock.Sent {
			t.Errorf("%+v", b)
		}
	}
	if _, stat, err := s.admin.Get(t.Context(), lockPath(0)); err != nil || stat.Owner != store.SessionID() {
		t.Errorf("%+v, %v", stat, err)
	}

	// The process was killed, and its live lock is still there.
	a.store = s.open()
	a.boot()
	g, err := a.co.Resume(t.Context(), a.disk.claim, labLease, near)
	if err != nil || g.Claim.Worker != 0 || g.Claim.Term != 2 || g.LeaseUntil < h || g.Wait != 50*time.Millisecond {
		t.Fatalf("%+v, %v", g, err)
	}
	a.claim = g.Claim
	a.mustBeat()
	if _, stat, err := s.admin.Get(t.Context(), lockPath(0)); err != nil || stat.Owner != a.store.SessionID() {
		t.Errorf("%+v, %v", stat, err)
	}

	a.disk.claim = a.claim
	a.disk.claim.ReservedUntil = a.now()
	a.disk.claim.Generation = a.disk.generation
	a.claim.Generation = a.disk.generation
	if err := a.co.Stop(t.Context(), a.claim, a.disk.claim.ReservedUntil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.admin.Get(t.Context(), lockPath(0)); !errors.Is(err, zkstore.ErrNoNode) || !s.slot(0).Stopped {
		t.Errorf("%v, %+v", err, s.slot(0))
	}
	a.boot()
	g, err = a.co.Resume(t.Context(), a.disk.claim, labLease, near)
	if err != nil || g.Claim.Term != 3 || g.Claim.Floor < a.disk.claim.ReservedUntil || s.slot(0).Stopped {
		t.Fatalf("%+v, %v", g, err)
	}
	a.claim = g.Claim
	a.mustBeat()

	end := a.now()
	if err := a.co.Release(t.Context(), a.claim, end); err != nil {
		t.Fatal(err)
	}
	if s.slot(0).LeaseUntil != max(end, a.claim.Floor) || s.tickets() != 0 {
		t.Errorf("%+v, %d tickets", s.slot(0), s.tickets())
	}
	if _, err := a.co.Resume(t.Context(), a.disk.claim, labLease, near); wantErrAs[*NotOursError](t, err).Lost {
		t.Error(err)
	}
}

// ZooKeeper's leader is killed while nodes send heartbeats. No node is fenced or takes its
// record for lost, and no lease bound goes down. A node skips the confirming time only if the same
// leader has led for long enough.
func TestLeaderElectionFencesNoNode(t *testing.T) {
	ens := zktest.Three(t)
	s := newServer(t, ens.Addr(), 64)
	a, b := s.serving("a", s.open()), s.serving("b", s.open())
	// steady resumes p again and again until p skips the confirming time. The record at path is
	// the oldest that the present leader has written.
	steady := func(p *peer, path string) {
		t.Helper()
		_, since := s.get(path)
		var first, last Grant
		eventually(t, 30*time.Second, func() (err error) {
			p.boot()
			last, err = p.co.Resume(t.Context(), p.disk.claim, labLease, near)
			if err != nil {
				return err
			}
			p.claim = last.Claim
			if first.Claim.Node == "" {
				first = last
			}
			if last.Wait != 0 {
				return fmt.Errorf("confirming for %s", last.Wait)
			}
			return nil
		})
		if led := first.Clock.Stamp - since.Ctime; first.Wait == 0 && led < steadyTimes*s.cl.ConfirmMs {
			t.Errorf("skipped after %d ms of the leader's: %+v", led, first)
		}
		p.mustBeat()
	}
	steady(a, clusterPath)

	ens.Kill(ens.Leader(t))
	failed, acked := 0, 0
	eventually(t, 60*time.Second, func() error {
		for _, p := range []*peer{a, b} {
			h := p.claim.LeaseUntil
			beat, err := p.beat()
			var fenced *FencedError
			if errors.As(err, &fenced) || beat.Lost || beat.FrozenUntil != 0 {
				t.Fatalf("%+v, %v", beat, err)
			}
			if err != nil && !errors.Is(err, zkstore.ErrUnreachable) {
				t.Fatal(err)
			}
			if err == nil && beat.LeaseUntil < h {
				t.Errorf("%d after %d", beat.LeaseUntil, h)
			}
			if err != nil {
				failed++
			} else {
				acked++
			}
		}
		if acked < 20 {
			return fmt.Errorf("%d acknowledged, %d failed", acked, failed)
		}
		return nil
	})
	if a.claim.Term < 2 || b.claim.Term != 1 || s.slot(1).Nonce != b.claim.Nonce {
		t.Errorf("%+v, %+v", a.claim, b.claim)
	}
	c := s.serving("c", s.open()) // its ticket is of the new leader's time
	steady(b, c.claim.Ticket)
}

// A running holder puts its record back after its slot was deleted, after ZooKeeper was restored
// from a copy, and after it was wiped.
func TestRunningHolderPutsItsRecordBack(t *testing.T) {
	ens := zktest.Single(t)
	s := newServer(t, ens.Addr(), 2)
	holder, other := s.serving("holder", s.open()), s.serving("other", s.open())
	kept := func(what string, wantLost bool) {
		t.Helper()
		was := holder.claim
		beat := holder.beatAgain()
		got := s.slot(0)
		if beat.Lost != wantLost || !beat.Confirmed || got.Nonce != holder.claim.Nonce || got.LeaseUntil < was.LeaseUntil || holder.claim.Term <= was.Term {
			t.Errorf("%s: %+v, slot %+v", what, beat, got)
		}
		cl, err := ReadCluster(t.Context(), s.admin)
		if err != nil || cl.UUID != s.cl.UUID || !cl.Frozen(1, holder.now()+millis(labW)) || cl.HighestSlot != 1 {
			t.Errorf("%s: %+v, %v", what, cl, err)
		}
		before := s.tickets()
		_, err = s.peer("newcomer", s.admin).register(t.Context())
		if f := wantErrAs[*FrozenError](t, err); f.Until != cl.FrozenUntil || s.tickets() != before {
			t.Errorf("%s: %v, %d tickets", what, err, s.tickets())
		}
		other.beatAgain()
		if got := s.slot(1); got.Nonce != other.claim.Nonce || got.Node != "other" {
			t.Errorf("%s: %+v", what, got)
		}
		frozen, err := ReadCluster(t.Context(), s.admin)
		if err == nil {
			_, err = Thaw(t.Context(), s.admin, frozen, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	if err := s.admin.Delete(t.Context(), slotPath(0), zkstore.AnyVersion); err != nil {
		t.Fatal(err)
	}
	kept("slot deleted", true)

	holder.mustBeat()
	copied := ens.Snapshot(t)
	holder.beatAgain()
	other.beatAgain()
	ens.Restore(t, copied)
	kept("restored", true)

	ens.Wipe(t)
	kept("wiped", true)
}
