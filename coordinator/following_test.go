package coordinator

import "testing"

// The change is number 6, made in incarnation 2.
func TestNotFollowed(t *testing.T) {
	at := Followed{Changes: 7, Incarnation: 2}
	for _, row := range []struct {
		name   string
		node   Followed
		live   bool
		behind bool
	}{
		{"followed", at, true, false},
		{"followed more", Followed{Changes: 9, Incarnation: 2}, true, false},
		{"not yet", Followed{Changes: 6, Incarnation: 2}, true, true},
		{"of a version without sequences", Followed{}, true, true},
		{"has counted more in an incarnation whose changes were lost", Followed{Changes: 9, Incarnation: 1}, true,
			true},
		{"in an incarnation after the change", Followed{Changes: 7, Incarnation: 3}, true, false},
		{"in an incarnation after the change, which it lacks", Followed{Changes: 5, Incarnation: 3}, true, true},
		{"started again and has not read the changes", Followed{Changes: 1}, true, true},
		{"cut off", Followed{Changes: 6, Incarnation: 2}, false, false},
	} {
		slots := []Entry{{Worker: 2, Live: true, Slot: Slot{Followed: at}}, {Worker: 3, Live: row.live,
			Slot: Slot{Followed: row.node}}}
		if got := NotFollowed(slots, at); len(got) > 0 != row.behind || row.behind && got[0].Worker != 3 {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}

func TestAbsent(t *testing.T) {
	const now = 1_000_000_000
	held := Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: now + 1}
	with := func(change func(*Slot)) Slot {
		s := held
		change(&s)
		return s
	}
	for name, row := range map[string]struct {
		entry  Entry
		absent bool
	}{
		"connected":         {Entry{Slot: held, Live: true}, false},
		"cut off":           {Entry{Slot: held}, true},
		"stopped":           {Entry{Slot: with(func(s *Slot) { s.Stopped = true })}, true},
		"the lease is over": {Entry{Slot: with(func(s *Slot) { s.LeaseUntil = 1 })}, false},
		"given back":        {Entry{Slot: with(func(s *Slot) { s.Released = true })}, false},
		"taken away":        {Entry{Slot: with(func(s *Slot) { s.Released, s.ReleasedBy = true, "op" })}, false},
		"never held":        {Entry{Slot: freeSlot()}, false},
		"lost":              {Entry{Slot: Slot{LeaseUntil: now + 1, Lost: true}}, false},
		"unreadable":        {Entry{Slot: parseSlot(nil), Absent: true}, false},
	} {
		if got := (Cluster{LeaseMs: 60_000}).Absent([]Entry{row.entry}, now); len(got) > 0 != row.absent {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
