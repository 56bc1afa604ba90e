package coordinator

import (
	"slices"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

// The change is number 6, made at 1000 s in incarnation 2, with a hold of 100 s. It is 1030 s now.
func TestNotFollowed(t *testing.T) {
	c := Change{At: Followed{Changes: 7, Incarnation: 2}, MadeMs: 1_000_000, HoldMs: 100_000}
	const now = 1_030_000
	const bound = 1_110_000 // the change, the hold and ClocksApart
	held := func(f Followed, beat int64, live bool) Entry {
		return Entry{Slot: Slot{Node: "n", Term: 1, Followed: f}, Stat: store.Stat{Mtime: beat}, Live: live}
	}
	with := func(e Entry, change func(*Entry)) Entry { change(&e); return e }
	done, late := Followed{Changes: 7, Incarnation: 2}, Followed{Changes: 6, Incarnation: 2}
	for _, row := range []struct {
		name  string
		slot  Entry
		until int64 // -1: not behind
	}{
		{"followed", held(done, now, true), -1},
		{"followed more", held(Followed{Changes: 9, Incarnation: 2}, now, true), -1},
		{"followed, then cut off", held(done, now, false), -1},
		{"connected", held(late, now, true), 0},
		{"connected, of a version without sequences", held(Followed{}, now, true), 0},
		{"has counted more in an incarnation whose changes were lost", held(Followed{Changes: 9, Incarnation: 1}, now, true), 0},
		{"in an incarnation after the change", held(Followed{Changes: 7, Incarnation: 3}, now, true), -1},
		{"in an incarnation after the change, which it lacks", held(Followed{Changes: 5, Incarnation: 3}, now, true), 0},
		{"started again and has not read the changes", held(Followed{Changes: 1}, now, true), 0},
		{"connected, silent for long", held(late, 0, true), 0},
		{"connected, and its record is lost", with(held(late, 0, true), func(e *Entry) { e.Slot = Slot{Term: -1}; e.Absent = true }), 0},
		{"cut off after the change", held(late, 1_010_000, false), bound},
		{"cut off before the change", held(late, 950_000, false), bound},
		{"cut off long before the change", held(late, 900_000, false), 900_000 + 60_000 + 110_000},
		{"cut off for longer than the hold", held(late, now-170_000, false), -1},
		{"stopped", with(held(late, now, false), func(e *Entry) { e.Slot.Stopped = true }), -1},
		{"gave its worker back", with(held(late, now, false), func(e *Entry) { e.Slot.Released = true }), -1},
		{"lost its worker to an operator, and may run", with(held(late, now, false), func(e *Entry) { e.Slot.Released, e.Slot.ReleasedBy = true, "x" }), bound},
		{"never held", with(held(late, now, false), func(e *Entry) { e.Slot = freeSlot() }), -1},
	} {
		got := NotFollowed([]Entry{row.slot}, c, now)
		if row.until == -1 && len(got) != 0 || row.until >= 0 && (len(got) != 1 || got[0].UntilMs != row.until) {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
	// Once the hold has passed since the change, no node that is cut off counts.
	if got := NotFollowed([]Entry{held(late, 1_010_000, false)}, c, bound); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	two := []Entry{with(held(late, now, true), func(e *Entry) { e.Worker = 3 }), held(done, now, true), with(held(late, now, false), func(e *Entry) { e.Worker = 5 })}
	var workers []int
	for _, b := range NotFollowed(two, c, now) {
		workers = append(workers, b.Worker)
	}
	if !slices.Equal(workers, []int{3, 5}) {
		t.Error(workers)
	}
}
