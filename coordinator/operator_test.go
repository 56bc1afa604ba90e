package coordinator

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zkstore"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/timeguard"
)

func (l *lab) operator() Operator {
	return Operator{Store: l.admin, Now: func() int64 { return l.now }, By: "test"}
}

// moment has the earlier and the later of our clock and the leader's. The earlier one decides whether a time has
// passed, and new bounds count from the later one.
func TestMomentIsOfBothClocks(t *testing.T) {
	for _, skew := range []int64{0, 3_000, -3_000} {
		l := newLab(t, 1)
		hand := l.operator()
		hand.Now = func() int64 { return l.now + skew }
		_, now, err := hand.begin(t.Context())
		if want := (moment{l.now + min(0, skew), l.now + max(0, skew)}); err != nil || now != want {
			t.Errorf("%d ms ahead of the leader: %+v, want %+v, %v", skew, now, want, err)
		}
	}
}

// No command changes anything while our clock differs by more than 5 s from the leader's.
func TestByHandWithAWrongClock(t *testing.T) {
	for name, skew := range map[string]int64{"ahead": 6000, "behind": -6000} {
		l := newLab(t, 2)
		a := l.serving("A")
		a.crash()
		l.expire()
		h, before, frozen := l.examine(0), l.slot(0), l.cluster()
		hand := l.operator()
		hand.Now = func() int64 { return l.now + skew }
		_, err1 := hand.Examine(t.Context(), 0)
		_, err2 := hand.ForceRelease(t.Context(), h)
		_, _, err3 := hand.Freeze(t.Context(), time.Hour)
		for _, err := range []error{err1, err2, err3} {
			if wrong := wantErrAs[*ClocksError](t, err); millis(wrong.Ahead) != skew {
				t.Errorf("%s: %v", name, wrong)
			}
		}
		if s := l.slot(0); s.Nonce != before.Nonce || l.cluster() != frozen || len(l.children(livePath)) != 0 {
			t.Errorf("%s: %+v, %+v, %q", name, s, l.cluster(), l.children(livePath))
		}
	}
}

func TestByHandWithoutACluster(t *testing.T) {
	l := newLab(t, 2)
	h := l.examine(1)
	l.remove(clusterPath)
	hand := l.operator()
	_, err1 := hand.Examine(t.Context(), 0)
	_, err2 := hand.ForceRelease(t.Context(), h)
	_, _, err3 := hand.Freeze(t.Context(), 0)
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, ErrNoCluster) {
			t.Errorf("got %v", err)
		}
	}
	l.cl.UUID = "another"
	l.init(l.cl)
	_, err := hand.ForceRelease(t.Context(), h)
	wantErrAs[*OtherClusterError](t, err)
}

const hourMs = int64(time.Hour / time.Millisecond)

type openLedger struct{}

func (openLedger) Save(Claim) (uint64, error) { return 1, nil }

// shortLease passes while a test waits.
const shortLease = 3 * time.Second

// taken returns the hold of a new node, which has sent its first heartbeat.
func taken(t *testing.T, st store.Store, cl Cluster, name string) (*Hold, error) {
	t.Helper()
	clock := func() int64 { return time.Now().UnixMilli() }
	c := New(Config{Store: st, Now: clock, Elapsed: timeguard.NewElapsed(timeguard.System()),
		Ledger: openLedger{}, Labels: Labels{Name: name}})
	c.Join(cl)
	h := c.Enlist("node-" + name)
	trust := func(Reading, []Reading) error { return nil }
	if _, err := h.Register(t.Context(), cl, shortLease, trust); err != nil {
		return nil, err
	}
	if err := h.Show(t.Context()); err != nil {
		t.Fatal(err)
	}
	beat, err := h.Heartbeat(t.Context(), Report{Lease: shortLease, Generation: 1, State: "serving"})
	return h, errors.Join(err, h.Accept(beat, 0))
}

// Both stores behave alike when an operator takes a slot from a running node. Another node acquires the slot after the
// lease bound, and the first node is in the slot's history.
func TestByHandConformance(t *testing.T) {
	zkstore.Both(t, func(t *testing.T, open func() store.Store) {
		clock := func() int64 { return time.Now().UnixMilli() }
		admin := open()
		cl, err := CreateCluster(t.Context(), admin, Cluster{UUID: "c", Layout: "test", Slots: 1,
			LeaseMs: shortLease.Milliseconds()}, clock())
		if err != nil {
			t.Fatal(err)
		}
		take := func(name string) (*Hold, error) { return taken(t, open(), cl, name) }
		a, err := take("a")
		if err != nil {
			t.Fatal(err)
		}
		hand := Operator{Store: admin, Now: clock, By: "test"}
		found, err := hand.Examine(t.Context(), 0)
		if err != nil || found.Availability != Live || found.Slot.Name != "a" {
			t.Fatalf("%+v, %v", found, err)
		}
		e, err := hand.ForceRelease(t.Context(), found)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Heartbeat(t.Context(), Report{Lease: shortLease, Generation: 1, State: "serving"})
		wantFenced(t, err) // and deletes its lock
		_, err = take("too early")
		wantErrAs[*FullError](t, err)
		free := e.Slot.LeaseUntil + cl.graceMs()
		zktest.Poll(time.Minute, func() bool {
			_, err = take("b")
			return !errors.As(err, new(*FullError))
		})
		if at := clock(); err != nil || at < free {
			t.Fatalf("%v at %d, the worker is free at %d", err, at, free)
		}
		now, err := readSlot(t.Context(), admin, cl, 0)
		if err != nil || !now.Live || now.Slot.Name != "b" || now.Slot.Term != 3 || now.Slot.ends()[0] != "taken" {
			t.Errorf("%+v, %v", now, err)
		}
		if _, is, err := hand.Freeze(t.Context(), time.Hour); err != nil || !is.Frozen(clock()) {
			t.Errorf("%+v, %v", is, err)
		}
		found.Slot = now.Slot
		_, err = hand.ForceRelease(t.Context(), found)
		wantErrAs[*StillFrozenError](t, err)
		if names, err := admin.Children(t.Context(), livePath); err != nil || len(names) != 1 {
			t.Errorf("left behind: %q, %v", names, err)
		}
	})
}
