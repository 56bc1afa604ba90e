package coordinator

import (
	"errors"
	"strings"
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
		_, now, err := hand.readClusterAndTime(t.Context())
		if want := (twoClocks{l.now + min(0, skew), l.now + max(0, skew)}); err != nil || now != want {
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

// taken returns a new node that holds a slot, which has sent its first heartbeat.
func taken(t *testing.T, st store.Store, cl Cluster, name string) (*Coordinator, error) {
	t.Helper()
	clock := func() int64 { return time.Now().UnixMilli() }
	c := New(Config{Store: st, Now: clock, Elapsed: timeguard.NewElapsed(timeguard.System()),
		Ledger: openLedger{}, Labels: Labels{Name: name}})
	c.Join(cl)
	c.Recall(Claim{Owner: Owner{Node: "node-" + name}})
	trust := func(Reading, []Reading) error { return nil }
	if _, _, err := c.Register(t.Context(), cl, shortLease, trust); err != nil {
		return nil, err
	}
	if err := c.EnsureLiveLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	beat, err := c.Heartbeat(t.Context(), Report{Lease: shortLease, Generation: 1, Phase: "serving"})
	return c, errors.Join(err, c.Accept(beat, 0))
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
		take := func(name string) (*Coordinator, error) { return taken(t, open(), cl, name) }
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
		_, err = a.Heartbeat(t.Context(), Report{Lease: shortLease, Generation: 1, Phase: "serving"})
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

func TestFreezeByHand(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	hand := l.operator()
	was, is, err := hand.Freeze(t.Context(), 0)
	if want := l.cl.nextHorizon(l.now); err != nil || was.FrozenUntil != 0 || is.FrozenUntil != want ||
		l.cluster() != is {
		t.Fatalf("%+v, %+v, %v", was, is, err)
	}
	frozen := wantErrAs[*FrozenError](t, l.node("B").register())
	if frozen.Until != is.FrozenUntil || frozen.By != "test" ||
		!strings.Contains(frozen.Error(),
			"until "+time.UnixMilli(is.FrozenUntil).UTC().Format(time.RFC3339)+" by operator test") ||
		len(l.children(ticketsPath)) != 1 {
		t.Errorf("%+v, tickets %q", frozen, l.children(ticketsPath))
	}
	if beat := a.mustBeat(); beat.FrozenUntil != is.FrozenUntil || beat.FrozenBy != "test" { // its own lease runs
		t.Errorf("%+v", beat)
	}
	a.must(a.halt())
	a.must(a.start())
	a.confirm()

	// A longer freeze moves the end, a shorter one does not.
	for _, row := range []struct {
		d     time.Duration
		until int64
	}{
		{time.Hour, is.FrozenUntil},
		{48 * time.Hour, l.now + 48*hourMs},
	} {
		_, is, err = hand.Freeze(t.Context(), row.d)
		if err != nil || is.FrozenUntil != row.until {
			t.Errorf("%+v: %+v, %v", row, is, err)
		}
	}
	// A holder that notices a loss does not shorten the operator's freeze.
	l.remove(SlotPath(0))
	if beat := a.mustBeat(); beat.FrozenUntil != is.FrozenUntil || beat.FrozenBy != "" {
		t.Errorf("%+v", beat)
	}
	if cl := l.cluster(); cl.FrozenUntil != is.FrozenUntil {
		t.Errorf("%+v", cl)
	}
	if _, err := Thaw(t.Context(), l.admin, l.cluster()); err != nil {
		t.Fatal(err)
	}
	l.serving("C")
	// A freeze that has ended does not count for the next one.
	if _, _, err = hand.Freeze(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	l.pass(time.Hour)
	_, is, err = hand.Freeze(t.Context(), time.Minute)
	if err != nil || is.FrozenUntil != l.now+millis(time.Minute) {
		t.Errorf("%+v, %v", is, err)
	}
}

// Thaw frees slots whose record is missing, or is a stand-in. It leaves the records of holders alone, and a freeze
// that its caller has not seen.
func TestThaw(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	for w := range 3 {
		l.remove(SlotPath(w))
	}
	a.mustBeat() // puts its own back, and freezes
	l.remove(SlotPath(1))
	l.put(2, Slot{LeaseUntil: l.now + millis(labW), StandsIn: true})
	c := l.node("C")
	wantErrAs[*FrozenError](t, c.register())
	seen := l.cluster()
	freed, err := Thaw(t.Context(), l.admin, seen)
	if err != nil || freed != 2 || l.cluster().FrozenUntil != 0 {
		t.Fatalf("freed %d, %+v, %v", freed, l.cluster(), err)
	}
	for w := 1; w <= 3; w++ {
		if s := l.slot(w); l.cluster().Availability(s, false, l.now, l.now) != Free {
			t.Errorf("slot %d: %+v", w, s)
		}
	}
	if s := l.slot(0); s.Node != a.claim.Node || !s.Confirmed {
		t.Errorf("the holder's: %+v", s)
	}
	if _, err := Thaw(t.Context(), l.admin, seen); !errors.Is(err, ErrFreezeChanged) {
		t.Errorf("another freeze than the one that was seen: %v", err)
	}
	a.mustBeat()
	c.must(c.register())
	c.confirm()
	l.disjoint()
}

// The change is number 6, made in incarnation 2. Worker 2 has followed it. The confirming time is 12 s.
func TestNotFollowed(t *testing.T) {
	const now, clock, window = int64(1_000_000), int64(5_000_000), int64(18_000)
	followed := func(number, incarnation int64) Followed { return Followed{Last: &Change{number, incarnation}} }
	at, late := Change{6, 2}, followed(5, 2)
	all := Roster{Cluster: Cluster{ConfirmMs: 12_000}, Now: clock, LeaderNow: now}
	holder := func(f Followed) Entry {
		return Entry{Worker: 3, Stat: store.Stat{Mtime: now - window - 1},
			Slot: Slot{Node: "n", Term: 1, HeartbeatMs: 3000, Followed: f}}
	}
	live := func(f Followed) Entry {
		e := holder(f)
		e.Live = true
		return e
	}
	reported := func(ago int64, change func(*Slot)) Entry {
		e := holder(late)
		e.Stat.Mtime = now - ago
		change(&e.Slot)
		return e
	}
	missing := Entry{Worker: 3, Missing: true, Slot: parseSlot(nil), Stat: store.Stat{Mtime: now}}
	for _, row := range []struct {
		name   string
		node   Entry
		behind bool
	}{
		{"followed", live(followed(6, 2)), false},
		{"followed more", live(followed(8, 2)), false},
		{"not yet", live(late), true},
		{"of a version without sequences", live(Followed{}), true},
		{"has counted more in an incarnation whose changes were lost", live(followed(8, 1)), true},
		{"in an incarnation after the change", live(followed(6, 3)), false},
		{"in an incarnation after the change, which it lacks", live(followed(4, 3)), true},
		{"started again and has not read the changes", live(followed(0, 0)), true},
		{"cut off", holder(late), false},
		{"its live lock is missing for a moment", reported(window, func(*Slot) {}), true},
		{"the same, by the clocks of nodes: the leader has leapt",
			reported(1e9, func(s *Slot) { s.ReportedClock = clock - window }), true},
		{"the same, and it has followed", reported(0, func(s *Slot) { s.Followed = followed(6, 2) }), false},
		{"stopped a moment ago", reported(0, func(s *Slot) { s.Stopped = true }), false},
		{"released a moment ago", reported(0, func(s *Slot) { s.Released = true }), false},
		{"taken from it a moment ago", reported(0, func(s *Slot) { s.Released, s.ReleasedBy = true, "op" }), true},
		{"lost a moment ago", reported(0, func(s *Slot) { *s = Slot{StandsIn: true} }), true},
		{"lost long ago", reported(window+1, func(s *Slot) { *s = Slot{StandsIn: true} }), false},
		{"missing", missing, false},
	} {
		other := live(followed(6, 2))
		other.Worker = 2
		all.Entries = []Entry{other, row.node}
		got := all.NotFollowed(at)
		if len(got) > 0 != row.behind || row.behind && got[0].Worker != 3 {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}

func TestAbsent(t *testing.T) {
	const now, hour = 1_000_000_000, 3_600_000
	held := Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: now + 1}
	with := func(change func(*Slot)) Entry {
		s := held
		change(&s)
		return Entry{Slot: s}
	}
	for name, row := range map[string]struct {
		entry         Entry
		clock, leader int64 // how far they are ahead
		absent        bool
	}{
		"connected":                       {entry: Entry{Slot: held, Live: true}},
		"cut off":                         {entry: Entry{Slot: held}, absent: true},
		"the operator's clock is ahead":   {entry: Entry{Slot: held}, clock: hour, absent: true},
		"the clock of the leader is":      {entry: Entry{Slot: held}, leader: hour, absent: true},
		"by both, the lease is over":      {entry: Entry{Slot: held}, clock: hour, leader: hour},
		"stopped":                         {entry: with(func(s *Slot) { s.Stopped = true }), absent: true},
		"the lease is over":               {entry: with(func(s *Slot) { s.LeaseUntil = 1 })},
		"given back":                      {entry: with(func(s *Slot) { s.Released = true })},
		"taken away":                      {entry: with(func(s *Slot) { s.Released, s.ReleasedBy = true, "op" })},
		"never held":                      {entry: Entry{Slot: freeSlot()}},
		"lost: its holder may be cut off": {entry: Entry{Slot: Slot{LeaseUntil: now + 1, StandsIn: true}}, absent: true},
		"missing":                         {entry: Entry{Slot: parseSlot(nil), Missing: true}, absent: true},
		"damaged":                         {entry: Entry{Slot: parseSlot([]byte("x"))}, absent: true},
	} {
		all := Roster{Cluster: Cluster{LeaseMs: 60_000}, Entries: []Entry{row.entry}, Now: now + row.clock,
			LeaderNow: now + row.leader}
		if got := all.Disconnected(); len(got) > 0 != row.absent {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An operator reads the workers by two clocks.
func TestRosterHasTheTimeOfTheLeader(t *testing.T) {
	l := newLab(t, 64)
	l.serving("A")
	const ahead = int64(time.Hour / time.Millisecond)
	o := l.operator()
	now := o.Now
	o.Now = func() int64 { return now() + ahead }
	all, err := o.Roster(t.Context())
	if err != nil || len(all.Entries) == 0 || !all.Reports(all.Entries[0]) || all.Now-all.LeaderNow != ahead {
		t.Errorf("%+v, %v", all, err)
	}
}
