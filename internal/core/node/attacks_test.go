package node

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/worker"
)

// Each of these tests plays a sequence of events that must not break a promise of docs/safety.md.

// A state directory that was copied, or invalidated by a fence, still names its cluster. The
// node must not put that cluster back in another ZooKeeper, which is empty.
func TestUnusableStateRestoresNoClusterInAnotherZooKeeper(t *testing.T) {
	for name, row := range map[string]struct {
		print  localcache.Fingerprint
		before func(*localcache.StateFile) error
	}{
		"copied": {localcache.Fingerprint{Inode: "another"}, func(*localcache.StateFile) error { return nil }},
		"fenced": {localcache.Fingerprint{}, (*localcache.StateFile).Invalidate},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.cfg.ZooKeeper = "zk1:2181"
			r.confirmedAndStopped()
			r.Mem = memzk.New(nil)
			cache, err := localcache.New(r.Disk, row.print)
			if err == nil {
				err = row.before(cache)
			}
			if err != nil {
				t.Fatal(err)
			}
			n := r.start(func(c *Config) { c.ZooKeeper, c.Cache = "zk2:2181", cache })
			err = n.ended()
			var other *OtherZooKeeperError
			if !errors.As(err, &other) || other.State != "zk1:2181" {
				t.Errorf("ended with %v", err)
			}
			if cl, err := coordinator.ReadCluster(t.Context(), r.Mem.Session()); !errors.Is(err,
				coordinator.ErrNoCluster) {
				t.Errorf("%+v, %v", cl, err)
			}
		})
	}
}

// ended waits for a node to end and returns its error. It fails the test after 10 s.
func (n *running) ended() error {
	n.t.Helper()
	select {
	case err := <-n.done:
		n.done <- err
		return err
	case <-time.After(10 * time.Second):
		n.t.Fatalf("it does not end: %s", n.Worker())
		return nil
	}
}

func (n *running) clusterUUID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.Load().Cluster.UUID
}

// lapse rewrites the record on the disk, as if its node had noticed a loss of data and had then
// been stopped for longer than its lease.
func (r *rig) lapse() {
	r.t.Helper()
	cache, err := localcache.New(r.Disk, localcache.Fingerprint{})
	if err != nil {
		r.t.Fatal(err)
	}
	rec, err := DecodeRecord(cache.Load().Record)
	if err != nil {
		r.t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	rec.Claim.Incarnation, rec.Claim.LeaseUntil, rec.Claim.ReservedUntil = now-5_000, now-1_000, now-1_001
	rec.Cluster.Incarnation = rec.Claim.Incarnation
	kept, err := rec.Encode()
	if err == nil {
		_, err = cache.Save(kept)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// A node has stored a claim on a fresh worker and does not get that worker. The local record must name the old worker
// again. Its reserved bound must be above all that the node may have issued: the bound in the old claim may be too low.
func TestFailedWorkerChangeKeepsTheReservedBound(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	n.stop()
	n.mu.Lock()
	old, gen := n.view.Load().Claim, n.tenure.gen
	n.mu.Unlock()
	limit := n.layout.Start(gen.Limit())
	other := coordinator.Claim{Owner: coordinator.Owner{Node: old.Node, Worker: old.Worker + 1}, PendingTerm: 1,
		PendingNonce: "p", Floor: old.Floor}
	if _, err := n.keeper.Save(other); err != nil {
		t.Fatal(err)
	}
	n.keeper.undoRotation(false)
	rec, err := DecodeRecord(r.loaded().Record)
	if err != nil || rec.Claim.Worker != old.Worker || rec.Claim.ReservedUntil < limit {
		t.Errorf("worker %d, a bound %d ms below what may have been issued, %v", rec.Claim.Worker,
			limit-rec.Claim.ReservedUntil, err)
	}
}

// A request that has found the tenure before a stop must get no ID after it: the stop has written where the tenure
// ended.
func TestStopEndsRequestsUnderWay(t *testing.T) {
	n := newRig(t).start().untilReady()
	underWay := n.serving.Load()
	n.stop()
	if run, err := underWay.gen.Reserve(t.Context(), 1); !errors.Is(err, worker.ErrClosed) {
		t.Errorf("it gets %v, %v", run, err)
	}
}

// A lease that had run out is confirmed again. The clock has gone back meanwhile, so the new
// floor is below what was issued. The new tenure must begin above what the old one has issued.
func TestReconfirmedTenureBeginsAboveIssuedIDs(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	lo := n.serving.Load().floor + 1
	for last := worker.Tick(0); n.layout.Start(last) < lo; last, _ = n.serving.Load().gen.Last() {
		n.next()
	}
	n.stop()
	n.mu.Lock()
	old, claim := n.tenure, n.view.Load().Claim
	n.mu.Unlock()
	end := n.layout.Start(old.gen.Close())
	closed, _ := n.keeper.closeBelowFloor(lo)
	beat := coordinator.Beat{Floor: lo, LeaseUntil: claim.LeaseUntil, Confirmed: true}
	if err := errors.Join(n.keeper.coord.Accept(beat, closed), n.keeper.beginTenure()); err != nil {
		t.Fatal(err)
	}
	if n.tenure == old || n.tenure.floor < end {
		t.Errorf("it goes on from %d ms before the end of what was issued", end-n.tenure.floor)
	}
}

// The clock went back. ZooKeeper gives the node another slot, and the answer is lost, again and
// again. Each such slot stays held for a lease, so the node must stop after a few.
func TestUnansweredWorkerChangesTakeFewSlots(t *testing.T) {
	r := newRig(t)
	r.Step(4 * time.Second)
	n := r.start().untilReady()
	n.until("confirmed", n.isConfirmed)
	n.issueFor(200 * time.Millisecond)
	n.session.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Op == "multi" && len(c.Ops) == 2 {
			if set, ok := c.Ops[1].(store.SetOp); ok && text(set.Data, "state") == "confirming" {
				return memzk.FailAfter
			}
		}
		return memzk.NoFault
	})
	r.Step(-4 * time.Second)
	beats := func() int64 { return n.Snapshot().Counts.Heartbeats }
	last := beats() + 60
	n.until("60 heartbeats", func() bool { wake(n.wakeKeeper); return beats() >= last })
	admin := r.Mem.Session()
	cl, err := coordinator.ReadCluster(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := coordinator.ReadSlots(t.Context(), admin, cl)
	held := 0
	for _, e := range entries {
		if e.Slot.Node == n.view.Load().Claim.Node && !e.Slot.Released {
			held++
		}
	}
	if err != nil || held < 2 || held > 1+maxRotations {
		t.Errorf("it holds %d slots, %d changes counted; %v", held, len(n.peek().rotations), err)
	}
}

// While a worker is exchanged, the old tenure serves. What the node says and decides is about that tenure, and not
// about the claim on the other worker that the local record has: that has no lease yet.
func TestOldTenureIsReportedDuringWorkerChange(t *testing.T) {
	n := newRig(t).start().untilReady()
	n.until("confirmed", n.isConfirmed)
	n.stop() // no goroutine of the node changes anything from now on
	hold := n.Tenure().Slot(0)
	before := n.Snapshot()
	other := coordinator.Claim{Owner: coordinator.Owner{Node: before.Node, Worker: 7}, Term: 3, PendingTerm: 4,
		PendingNonce: "p", Floor: n.now() + 9000}
	if _, err := n.keeper.Save(other); err != nil {
		t.Fatal(err)
	}
	if got := n.refusalAtBound(); got.Cause != CauseReservedBound {
		t.Errorf("at the bound of a tenure that holds, the cause is %s", got.Cause)
	}
	if s := n.Snapshot(); *s.Worker != *before.Worker || s.Term != before.Term || *s.LeaseEndsMs != *before.LeaseEndsMs {
		t.Errorf("it shows worker %d, term %d; want %d, %d", *s.Worker, s.Term, *before.Worker, before.Term)
	}
	if got := n.Tenure().Slot(0); got != hold {
		t.Errorf("named sequences go by %+v, want %+v", got, hold)
	}
	// The record on the disk is about the other worker, so no bound of the old one rises.
	n.serving.Store(n.tenure)
	if rec, due := n.extension(0); due {
		t.Errorf("the old worker's bound would rise to %d", rec.Claim.ReservedUntil)
	}
}
