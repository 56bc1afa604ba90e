package coordinator

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// The change is number 6, made in incarnation 2. Worker 2 has followed it. The confirming time is 12 s.
func TestNotFollowed(t *testing.T) {
	const now, clock, window = int64(1_000_000), int64(5_000_000), int64(18_000)
	at := Followed{Changes: 7, Incarnation: 2}
	late := Followed{Changes: 6, Incarnation: 2}
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
	missing := Entry{Worker: 3, Absent: true, Slot: parseSlot(nil), Stat: store.Stat{Mtime: now}}
	for _, row := range []struct {
		name   string
		node   Entry
		behind bool
	}{
		{"followed", live(at), false},
		{"followed more", live(Followed{Changes: 9, Incarnation: 2}), false},
		{"not yet", live(late), true},
		{"of a version without sequences", live(Followed{}), true},
		{"has counted more in an incarnation whose changes were lost", live(Followed{Changes: 9, Incarnation: 1}), true},
		{"in an incarnation after the change", live(Followed{Changes: 7, Incarnation: 3}), false},
		{"in an incarnation after the change, which it lacks", live(Followed{Changes: 5, Incarnation: 3}), true},
		{"started again and has not read the changes", live(Followed{Changes: 1}), true},
		{"cut off", holder(late), false},
		{"its live lock is missing for a moment", reported(window, func(*Slot) {}), true},
		{"the same, by the clocks of nodes: the leader has leapt",
			reported(1e9, func(s *Slot) { s.ReportedClock = clock - window }), true},
		{"the same, and it has followed", reported(0, func(s *Slot) { s.Followed = at }), false},
		{"stopped a moment ago", reported(0, func(s *Slot) { s.Stopped = true }), false},
		{"released a moment ago", reported(0, func(s *Slot) { s.Released = true }), false},
		{"taken from it a moment ago", reported(0, func(s *Slot) { s.Released, s.ReleasedBy = true, "op" }), true},
		{"lost a moment ago", reported(0, func(s *Slot) { *s = Slot{Lost: true} }), true},
		{"lost long ago", reported(window+1, func(s *Slot) { *s = Slot{Lost: true} }), false},
		{"missing", missing, false},
	} {
		followed := live(at)
		followed.Worker = 2
		all.Entries = []Entry{followed, row.node}
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
		"lost: its holder may be cut off": {entry: Entry{Slot: Slot{LeaseUntil: now + 1, Lost: true}}, absent: true},
		"missing":                         {entry: Entry{Slot: parseSlot(nil), Absent: true}, absent: true},
		"damaged":                         {entry: Entry{Slot: parseSlot([]byte("x"))}, absent: true},
	} {
		all := Roster{Cluster: Cluster{LeaseMs: 60_000}, Entries: []Entry{row.entry}, Now: now + row.clock,
			LeaderNow: now + row.leader}
		if got := all.Absent(); len(got) > 0 != row.absent {
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
