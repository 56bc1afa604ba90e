package coordinator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// A node that started without ZooKeeper reports its restart, and the write is not acknowledged. It may find its own
// write at the next heartbeat, and must not be fenced by it.
func TestRestartReportIsNotFencedByItself(t *testing.T) {
	for name, fault := range map[string]store.Fault{"not applied": store.FailBefore, "not acknowledged": store.FailAfter} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			a.crash()
			l.pass(2*DefaultHeartbeat + time.Millisecond) // a gap
			a.startAlone()
			a.hook = faulty(fault, 0, 2, touching("set", slotPath(0)))
			for range 2 {
				l.pass(time.Second)
				if _, err := a.beat(); err == nil {
					t.Fatal("acknowledged")
				}
			}
			a.hook = nil
			beat := a.mustBeat()
			if s := l.slot(0); beat.Confirmed || beat.Wait != labConfirm || s.Nonce != a.claim.Nonce || s.Confirmed || a.h.Alone() {
				t.Errorf("%+v, %+v", beat, s)
			}
			a.confirm()
			l.disjoint()
		})
	}
}

// A node starts without ZooKeeper from an old copy of another node's state. It is fenced even if the record has the
// nonce that is pending in the copy.
func TestRestartFromAnOldCopyIsFenced(t *testing.T) {
	l := newLab(t, 4)
	a := l.node("A")
	var copied disk
	a.must(a.register())
	a.confirm()
	a.crash()
	a.disk.saving = func(c Claim) { copied = *a.disk; copied.claim = c }
	a.must(a.resume())
	a.disk.saving = nil
	copied.generation++
	a.confirm()
	l.serve(time.Minute)

	b := l.node("copy of A")
	b.disk = &copied
	b.startAlone()
	if b.claim.PendingNonce != a.claim.Nonce {
		t.Fatalf("%+v is no copy of %+v in the making", b.claim, a.claim)
	}
	_, err := b.beat()
	wantFenced(t, err)
}

// The lease of a holder, or of a new node, has run out, and the node finds its own record. Another node may have held
// the slot since, and ZooKeeper may have been put back to an older copy that does not show it. So the first node must
// wait for another confirming time. Here the other node comes back and fences the first.
func TestLapsedLeaseConfirmsAnew(t *testing.T) {
	for name, first := range map[string]func(l *lab) *member{
		"holder": func(l *lab) *member { return l.serving("A") },
		"newcomer": func(l *lab) *member {
			a := l.node("A")
			a.must(a.register())
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := first(l)
			copied := l.mem.Snapshot()
			a.sess.Partition()
			a.sess.Expire()
			l.pass(2 * time.Minute)
			b := l.serving("B")
			l.mem.Restore(copied)
			l.mem.ExpireOrphans()
			l.forget()

			a.sess.Heal()
			if beat := a.mustBeat(); beat.Confirmed || a.issue() || beat.Wait != labConfirm {
				t.Fatalf("%+v, with B in the slot", beat)
			}
			l.pass(time.Second)
			if beat := b.mustBeat(); !beat.Restored || !b.issue() {
				t.Errorf("the holder did not come back: %+v", beat)
			}
			_, err := a.beat()
			wantFenced(t, err)
			l.disjoint()
		})
	}
}

// A doubt about a lease is over. Later the lease runs out while nothing is lost. The holding goes on no earlier than at
// that time, not at the floor of the doubt.
func TestLapseAfterADoubtRaisesTheFloor(t *testing.T) {
	l := newLab(t, 1)
	l.wipe()
	l.mem.SetEpoch(1)
	l.init(l.cl)
	a := l.serving("A")
	a.h.doubt = doubt{raised: true, now: l.now, stamp: l.now}
	a.mustBeat()
	l.pass(time.Hour)
	started := l.now
	for range 30 {
		if a.mustBeat().Confirmed {
			break
		}
		l.pass(time.Second)
	}
	if !a.claim.Confirmed || a.claim.Floor < started {
		t.Errorf("its floor is %d ms before the lapse: %+v", started-a.claim.Floor, a.claim)
	}
}

// A lease has run out, and no other node has taken the slot. The holder serves again after the confirming time, which
// is 0 in a steady ensemble. It does so even if the write that began the wait was not acknowledged.
func TestLapsedLeaseServesAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		fault store.Fault
		wait  time.Duration
	}{
		"acknowledged":     {wait: labConfirm},
		"not acknowledged": {wait: labConfirm, fault: store.FailAfter},
		"not applied":      {wait: labConfirm, fault: store.FailBefore},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			floor := a.t.lo
			l.pass(time.Hour)
			if tc.fault != store.NoFault {
				a.hook = faulty(tc.fault, 0, 1, touching("set", slotPath(0)))
				if _, err := a.beat(); err == nil {
					t.Fatal("acknowledged")
				}
			}
			started := l.now
			for !a.issue() {
				if beat := a.mustBeat(); beat.Confirmed && l.now-started < millis(tc.wait) {
					t.Fatalf("confirmed after %dms", l.now-started)
				}
				l.pass(time.Second)
				if l.now-started > millis(tc.wait+3*time.Second) {
					t.Fatalf("not confirmed after %dms", l.now-started)
				}
			}
			if a.claim.Floor <= floor {
				t.Errorf("the floor is %d still", a.claim.Floor)
			}
			l.disjoint()
		})
	}
}

func TestHeartbeat(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	was := l.slot(0)
	l.pass(DefaultHeartbeat)
	beat := a.mustBeat()
	s := l.slot(0)
	if s.LeaseUntil != l.now+millis(labLease) || beat.LeaseUntil != s.LeaseUntil || !beat.Confirmed || beat.Restored || beat.FrozenUntil != 0 {
		t.Errorf("%+v, %+v", beat, s)
	}
	if s.Term != was.Term || s.Nonce != was.Nonce || s.ReportedClock != l.now || s.Generation != a.claim.Generation {
		t.Errorf("%+v", s)
	}
	if beat.Clock != (Reading{Sent: l.now, Acked: l.now, Stamp: l.now}) {
		t.Errorf("%+v", beat.Clock)
	}
	// The lease bound does not go below that of the slot or of our claim.
	l.pass(time.Second)
	a.wait = time.Second
	if beat := a.mustBeat(); beat.LeaseUntil != s.LeaseUntil {
		t.Errorf("%d after %d", beat.LeaseUntil, s.LeaseUntil)
	}
	a.wait = labW
	if beat := a.mustBeat(); beat.LeaseUntil != l.now+millis(labW) {
		t.Errorf("%+v", beat)
	}
}

// If the clock is not trusted, a heartbeat reports its time but moves no bound.
func TestHeartbeatWithoutLease(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	was := l.slot(0)
	a.skew, a.wait = millis(365*24*time.Hour), 0
	beat, err := a.h.Heartbeat(t.Context(), a.report())
	s := l.slot(0)
	if err == nil && (s.LeaseUntil > was.LeaseUntil || s.ReportedClock != a.clock()) {
		t.Errorf("%+v, %+v", beat, s)
	}
}

// A write that was not acknowledged does not raise the node's lease bound. The next heartbeat finds the write in
// ZooKeeper and goes on from it.
func TestHeartbeatNotAcknowledged(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	h := a.claim.LeaseUntil
	l.pass(time.Second)
	a.hook = faulty(store.FailAfter, 0, 1, touching("set", slotPath(0)))
	beat, err := a.beat()
	if err == nil || beat.LeaseUntil != 0 || a.claim.LeaseUntil != h || l.slot(0).LeaseUntil != h+1000 {
		t.Errorf("%+v, %v, slot %d", beat, err, l.slot(0).LeaseUntil)
	}
	a.hook = nil
	if beat := a.mustBeat(); beat.LeaseUntil != h+1000 || beat.Restored {
		t.Errorf("%+v", beat)
	}
}

// ZooKeeper has lost the record, the node writes it again, and then loses the connection. The heartbeat reports the
// loss, because the next one finds the record in order.
func TestLossIsReportedAlthoughTheHeartbeatFails(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	l.remove(slotPath(0))
	created := touching("create", slotPath(0))
	written := false
	a.hook = func(c store.Call) store.Fault {
		if written {
			return store.FailBefore
		}
		written = created(c)
		return store.NoFault
	}
	if beat, err := a.beat(); err == nil || !beat.Restored || !written {
		t.Errorf("%+v, %v, written %v", beat, err, written)
	}
	a.hook = nil
	if beat := a.mustBeat(); beat.Restored {
		t.Errorf("%+v", beat)
	}
}

// A server that lags behind does not have the node's record yet. A heartbeat must not take that for a loss of data.
func TestHeartbeatThroughALaggingServer(t *testing.T) {
	l := newLab(t, 4)
	early := l.mem.Snapshot()
	a := l.serving("A")
	l.pass(time.Second)
	a.mustBeat()
	a.sess.LagTo(early)
	for range 2 {
		if beat := a.mustBeat(); beat.Restored || beat.FrozenUntil != 0 || l.cluster().FrozenUntil != 0 {
			t.Errorf("%+v", beat)
		}
		l.pass(time.Second)
	}
}

func TestFenced(t *testing.T) {
	for name, take := range map[string]func(l *lab){
		"by a higher term":                       func(l *lab) { l.takeOver(0, 2, false) },
		"by a confirmed record of the same term": func(l *lab) { l.takeOver(0, 1, true) },
		"by a cluster that has confirmed":        func(l *lab) { l.wipe(); l.init(Cluster{UUID: "new", Slots: 4, Confirmed: true}) },
		"by nobody, its lease having ended":      func(l *lab) { l.remove(slotPath(0)); l.pass(labLease) },
		"by its own end in a cluster that went":  func(l *lab) { l.wipe(); l.pass(labLease) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			take(l)
			l.forget()
			_, err := a.beat()
			wantFenced(t, err)
			if err == nil || a.issue() {
				t.Error("goes on")
			}
			if name == "by its own end in a cluster that went" && !l.cluster().Frozen(l.now) {
				t.Error("others may still live by leases in it, and nobody keeps newcomers off")
			}
		})
	}
}

// The holder of a slot replaces a record that cannot be read. No other node takes the slot.
func TestUnreadableSlot(t *testing.T) {
	for _, garbage := range []string{"{}", "null", "x", "", `{"node":"n","term":1}`} {
		l := newLab(t, 1)
		a := l.serving("A")
		if _, err := l.admin.Set(t.Context(), slotPath(0), []byte(garbage), store.AnyVersion); err != nil {
			t.Fatal(err)
		}
		l.forget()
		l.remove(lockPath(0))
		b := l.node("B")
		if full := wantErrAs[*FullError](t, b.register()); full.Disconnected != 1 || full.NextFree != 0 {
			t.Errorf("%q: %+v", garbage, full)
		}
		if beat := a.mustBeat(); !beat.Restored || l.slot(0).Nonce != a.claim.Nonce || l.slot(0).LeaseUntil < a.claim.LeaseUntil {
			t.Errorf("%q: %+v, %+v", garbage, beat, l.slot(0))
		}
		l.disjoint()
	}
}

// If /cluster cannot be read, holders go on issuing until their leases end, and no node registers. No node overwrites
// /cluster.
func TestUnreadableCluster(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	if _, err := l.admin.Set(t.Context(), clusterPath, []byte("somebody else's"), store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	l.pass(time.Second)
	if _, err := a.beat(); err == nil || !a.issue() {
		t.Error(err)
	}
	if err := l.node("B").register(); err == nil {
		t.Error("registered")
	}
	if data, _, _ := l.admin.Get(t.Context(), clusterPath); string(data) != "somebody else's" {
		t.Errorf("%q", data)
	}
}

// ZooKeeper denies access to a slot. Heartbeat, Stop and Register return the error, and Register leaves no ticket.
func TestDenied(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	deny := &denying{Store: a.sess, path: slotPath(0)}
	a.co.Store = deny
	l.pass(time.Second)
	if _, err := a.beat(); !errors.Is(err, store.ErrDenied) || !a.issue() {
		t.Error(err)
	}
	if err := a.h.Stop(t.Context(), a.end(), 1); !errors.Is(err, store.ErrDenied) {
		t.Error(err)
	}
	b := l.node("B")
	b.co.Store = &denying{Store: b.sess, path: slotPath(1)}
	if err := b.register(); !errors.Is(err, store.ErrDenied) || len(l.children(ticketsPath)) != 1 {
		t.Errorf("%v, %q", err, l.children(ticketsPath))
	}
}

// denying is a Store that denies reads of one path.
type denying struct {
	store.Store
	path string
}

func (d *denying) Get(ctx context.Context, path string) ([]byte, store.Stat, error) {
	if path == d.path {
		return nil, store.Stat{}, store.ErrDenied
	}
	return d.Store.Get(ctx, path)
}

func (d *denying) GetAll(ctx context.Context, paths ...string) ([]store.Record, error) {
	if slices.Contains(paths, d.path) {
		return nil, store.ErrDenied
	}
	return d.Store.GetAll(ctx, paths...)
}
