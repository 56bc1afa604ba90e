package coordinator

import (
	"strings"
	"testing"
)

func TestAvailability(t *testing.T) {
	const now, grace = 1_000_000, 5_000
	cl := Cluster{LeaseMs: millis(labW)}
	for name, tc := range map[string]struct {
		slot Slot
		live bool
		// leader is the offset of the leader's clock from ours, in milliseconds.
		leader int64
		want   Availability
	}{
		"never held":             {slot: freeSlot(), want: Free},
		"never held, live":       {slot: freeSlot(), live: true, want: Live},
		"bound ahead":            {slot: Slot{Term: 1, LeaseUntil: now + 1}, want: Disconnected},
		"bound ahead, stopped":   {slot: Slot{Term: 1, LeaseUntil: now + 1, Stopped: true}, want: Stopped},
		"bound reached":          {slot: Slot{Term: 1, LeaseUntil: now - grace}, want: Free},
		"bound just reached":     {slot: Slot{Term: 1, LeaseUntil: now - grace + 1}, want: Disconnected},
		"bound reached, stopped": {slot: Slot{Term: 1, LeaseUntil: now - grace, Stopped: true}, want: Free},
		"bound past, live":       {slot: Slot{Term: 1, LeaseUntil: 1}, live: true, want: Live},
		"bound past by the leader's only": {slot: Slot{Term: 1, LeaseUntil: now + 1}, leader: 7000,
			want: Disconnected},
		"bound past by ours only": {slot: Slot{Term: 1, LeaseUntil: now - grace}, leader: -1,
			want: Disconnected},
		"released": {slot: Slot{Term: 1, LeaseUntil: now + 10_000, Released: true},
			want: Free},
		"released, more than 10 s ahead": {slot: Slot{Term: 1, LeaseUntil: now + 10_001, Released: true},
			want: Releasing},
		"released, ahead by the leader's": {slot: Slot{Term: 1, LeaseUntil: now + 10_000, Released: true}, leader: -1,
			want: Releasing},
		"kept for its holder":              {slot: Slot{LeaseUntil: now + 1, StandsIn: true}, want: Disconnected},
		"kept for its holder, long enough": {slot: Slot{LeaseUntil: now - grace, StandsIn: true}, want: Free},
		"unreadable":                       {slot: Slot{Term: -1}, want: Disconnected},
		"released and live (it is leaving)": {slot: Slot{Term: 1, LeaseUntil: 1, Released: true}, live: true,
			want: Live},
	} {
		if got := cl.Availability(tc.slot, tc.live, now, now+tc.leader); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	// With a longest lease of 12 s, a slot stays with its holder for 1 s after the bound.
	short := Cluster{LeaseMs: 12_000}
	if got := short.Availability(Slot{Term: 1, LeaseUntil: now - 1000}, false, now, now); got != Free {
		t.Errorf("a lease of 12 s that ended a second ago: %d", got)
	}
}

func TestFullError(t *testing.T) {
	for name, tc := range map[string]struct {
		add  func(e *FullError)
		next int64
		says string
	}{
		"all live": {add: func(e *FullError) { e.add(Live, 500) },
			says: "(1 live, 0 disconnected, 0 stopped, 0 releasing). No lease is about to expire. "},
		"the earliest counts": {add: func(e *FullError) {
			e.add(Disconnected, 70_000)
			e.add(Stopped,
				60_000)
			e.add(Live, 1)
		},
			next: 60_000, says: "(1 live, 1 disconnected, 1 stopped, 0 releasing). The next one is free in 1m0s"},
		"releasing frees before its bound": {add: func(e *FullError) {
			e.add(Releasing, 40_000)
			e.add(Disconnected,
				31_000)
		},
			next: 30_000, says: "The next one is free in 30s"},
		"a holder keeps it a little longer": {add: func(e *FullError) {
			e.grace = 5000
			e.add(Disconnected, 60_000)
			e.add(Releasing, 80_000)
			e.add(Disconnected, 0)
		}, next: 65_000, says: "is free in 1m5s"},
		"unreadable never frees": {add: func(e *FullError) { e.add(Disconnected, 0) },
			says: "No lease is about to expire"},
	} {
		e := FullError{Slots: 3}
		tc.add(&e)
		if e.NextFree != tc.next || !strings.Contains(e.Error(), tc.says) {
			t.Errorf("%s: %v", name, &e)
		}
	}
	if f := (&FrozenError{Until: 1_700_000_000_000}).Error(); !strings.Contains(f, "2023-11-14T22:13:20Z") {
		t.Error(f)
	}
}
