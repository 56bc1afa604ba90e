package coordinator

import (
	"errors"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

func (f Finding) String() string { return [...]string{"ours", "fenced", "lost"}[f] }

func TestJudgeSlot(t *testing.T) {
	mine := Claim{Owner: Owner{Node: "me"}, Term: 5, Nonce: "n5", PendingTerm: 6, PendingNonce: "n6", LeaseUntil: 100,
		Incarnation: 7}
	of := func(incarnation int64, s *Slot) *Slot { s.Incarnation = incarnation; return s }
	held := func(node, nonce string, term int64, confirmed bool) *Slot {
		return &Slot{Node: node, Nonce: nonce, Term: term, LeaseUntil: 200, Confirmed: confirmed, Incarnation: 7}
	}
	for name, tc := range map[string]struct {
		found *Slot
		want  Finding
	}{
		"absent":                             {nil, FoundLost},
		"ours":                               {held("me", "n5", 5, true), FoundOurs},
		"ours, pending":                      {held("me", "n6", 6, false), FoundOurs},
		"ours, of any term":                  {held("me", "n5", 9, true), FoundOurs},
		"our node, another nonce, higher":    {held("me", "n7", 7, false), FoundFenced},
		"our node, another nonce, confirmed": {held("me", "n7", 5, true), FoundFenced},
		"our nonce, another node":            {held("other", "n5", 6, false), FoundFenced},
		"higher term, unconfirmed":           {held("other", "x", 6, false), FoundFenced},
		"higher term, confirmed":             {held("other", "x", 6, true), FoundFenced},
		"higher term, unconfirmed, H below": {
			&Slot{Node: "other", Nonce: "x", Term: 9, LeaseUntil: 99, Incarnation: 7}, FoundFenced,
		},
		"higher term, confirmed, H below": {
			&Slot{Node: "other", Nonce: "x", Term: 9, LeaseUntil: 99, Confirmed: true, Incarnation: 7}, FoundFenced,
		},
		"higher term, unconfirmed, H equal": {
			&Slot{Node: "other", Nonce: "x", Term: 9, LeaseUntil: 100, Incarnation: 7}, FoundFenced,
		},
		"equal term, confirmed":                        {held("other", "x", 5, true), FoundFenced},
		"equal term, unconfirmed":                      {held("other", "x", 5, false), FoundLost},
		"lower term, confirmed":                        {held("other", "x", 4, true), FoundLost},
		"lower term, unconfirmed":                      {held("other", "x", 4, false), FoundLost},
		"later incarnation, confirmed":                 {of(8, held("other", "x", 1, true)), FoundFenced},
		"later incarnation, unconfirmed":               {of(8, held("other", "x", 9, false)), FoundLost},
		"earlier incarnation, confirmed":               {of(6, held("other", "x", 9, true)), FoundLost},
		"earlier incarnation, unconfirmed":             {of(6, held("other", "x", 9, false)), FoundLost},
		"our node, another nonce, earlier incarnation": {of(6, held("me", "n7", 9, true)), FoundLost},
		"ours, of any incarnation":                     {of(8, held("me", "n5", 5, true)), FoundOurs},
		"kept for its holder":                          {&Slot{LeaseUntil: 9, StandsIn: true}, FoundLost},
		"never held":                                   {new(freeSlot()), FoundLost},
		"unreadable":                                   {&Slot{Term: -1}, FoundLost},
		"no nonce":                                     {held("me", "", 4, true), FoundLost},
	} {
		if got := slotFinding(tc.found, mine); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if got := slotFinding(held("me", "", 5, true), Claim{Owner: Owner{Node: "me"}, Term: 5}); got != FoundFenced {
		t.Errorf("a claim and a record without nonces: %s", got)
	}
}

// Another node has raised the incarnation. Before our record was written in it, ZooKeeper was put back to data from
// before.
func TestJudgeGoesByTheHighestIncarnationSeen(t *testing.T) {
	ours := Claim{Owner: Owner{Node: "a"}, Nonce: "a", Term: 1, Incarnation: 2}
	v := recorded{cl: &Cluster{UUID: "c", Incarnation: 2}, slot: &Slot{Node: "a", Nonce: "a", Term: 1, Incarnation: 2}}
	for seen, want := range map[int64]Finding{2: FoundOurs, 3: FoundLost} {
		got, why := (proof{Claim: ours}).finding(v, Cluster{UUID: "c", Incarnation: seen})
		if got != want {
			t.Errorf("seen %d: %s, %s", seen, got, why)
		}
	}
}

func TestClusterFinding(t *testing.T) {
	for name, tc := range map[string]struct {
		found *Cluster
		want  Finding
	}{
		"absent":               {nil, FoundLost},
		"ours":                 {&Cluster{UUID: "c", Incarnation: 5}, FoundOurs},
		"ours, confirmed":      {&Cluster{UUID: "c", Incarnation: 5, InUse: true}, FoundOurs},
		"ours, a later one":    {&Cluster{UUID: "c", Incarnation: 6}, FoundOurs},
		"ours, an older one":   {&Cluster{UUID: "c", Incarnation: 4, InUse: true}, FoundLost},
		"another, unconfirmed": {&Cluster{UUID: "d"}, FoundLost},
		"another, confirmed":   {&Cluster{UUID: "d", InUse: true}, FoundFenced},
	} {
		if got := ClusterFinding(tc.found, "c", 5); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A rightful next holder has a later first term, and our tenure in its history.
func TestWasLost(t *testing.T) {
	mine := Claim{Owner: Owner{Node: "me"}, Term: 5, Nonce: "n5", LeaseUntil: 100, EverConfirmed: true, Incarnation: 7}
	past := func(of ...PastHolder) History { return of }
	other := func(term int64) PastHolder { return PastHolder{Node: "x", Term: term, Ended: EndedVanished} }
	us := PastHolder{Node: "me", Term: 4, Ended: EndedVanished}
	for name, tc := range map[string]struct {
		change func(*Slot, *Claim)
		lost   bool
	}{
		"a rightful next holder":  {func(s *Slot, _ *Claim) { s.History = past(other(1), us) }, false},
		"the one after it":        {func(s *Slot, _ *Claim) { s.History = past(us, other(6)) }, false},
		"confirmed":               {func(s *Slot, _ *Claim) { s.Confirmed, s.History = true, past(us) }, false},
		"it began at our term":    {func(s *Slot, _ *Claim) { s.FromTerm, s.History = 5, past(us) }, true},
		"it began below our term": {func(s *Slot, _ *Claim) { s.FromTerm = 1 }, true},
		"no history":              {nil, true},
		"a history without us": {
			func(s *Slot, _ *Claim) { s.History = past(other(1), other(2), other(3), other(4)) }, true,
		},
		"three after us, none of us": {
			func(s *Slot, _ *Claim) { s.History = past(other(6), other(7), other(8)) }, true,
		},
		"our entry may be dropped": {
			func(s *Slot, _ *Claim) { s.History = past(other(6), other(7), other(8), other(9)) }, false,
		},
		"four before us, of higher terms": {func(s *Slot, c *Claim) {
			c.Floor, s.History = 50, past(other(6), other(7), other(8), other(9))
		}, true},
		"it began before our lease had expired": {
			func(s *Slot, _ *Claim) { s.Granted, s.History = 99, past(us) }, true,
		},
		"it began when our lease had expired": {
			func(s *Slot, _ *Claim) { s.Granted, s.History = 100, past(us) }, false,
		},
		"we gave the slot back": {func(s *Slot, _ *Claim) {
			s.Granted, s.History = 99, past(us, PastHolder{Node: "me", Term: 5, Ended: EndedReleased})
		}, false},
		"an operator took the slot from us": {func(s *Slot, _ *Claim) {
			s.Granted, s.History = 99, past(PastHolder{Node: "me", Term: 5, Ended: EndedTaken})
		}, false},
		"we never confirmed":     {func(_ *Slot, c *Claim) { c.EverConfirmed = false }, false},
		"by this node":           {func(s *Slot, _ *Claim) { s.Node = "me" }, false},
		"of another incarnation": {func(s *Slot, _ *Claim) { s.Incarnation = 8 }, false},
		"unreadable":             {func(s *Slot, _ *Claim) { s.Term = -1 }, false},
		"an operator released the other node's": {
			func(s *Slot, _ *Claim) { s.Released, s.ReleasedBy = true, "op" }, true,
		},
	} {
		found, claim := Slot{Node: "other", Nonce: "x", Term: 9, FromTerm: 9, LeaseUntil: 200, Incarnation: 7}, mine
		if tc.change != nil {
			tc.change(&found, &claim)
		}
		if got := claim.wasLost(found); got != tc.lost {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestJudgeResume(t *testing.T) {
	mine := Claim{Owner: Owner{"me", 7}, Term: 5, Nonce: "n5", PendingTerm: 6, PendingNonce: "n6", Generation: 40,
		ReservedUntil: 1000}
	ours := Slot{Node: "me", Nonce: "n5", Term: 5, LeaseUntil: 1, Confirmed: true, Generation: 40}
	with := func(change func(*Slot)) *Slot {
		s := ours
		change(&s)
		return &s
	}
	for name, tc := range map[string]struct {
		found *Slot
		says  string // "" for nil
		lost  bool
	}{
		"ours":              {found: &ours},
		"ours, pending":     {found: with(func(s *Slot) { s.Nonce, s.Term = "n6", 6 })},
		"ours, stopped":     {found: with(func(s *Slot) { s.Stopped, s.StoppedAt = true, 1000 })},
		"ours, unconfirmed": {found: with(func(s *Slot) { s.Confirmed = false })},
		"older generation":  {found: with(func(s *Slot) { s.Generation = 39 })},
		"newer generation":  {with(func(s *Slot) { s.Generation = 41 }), "old copy", false},
		"absent":            {nil, "no record", true},
		"released":          {with(func(s *Slot) { s.Released = true }), "released", false},
		"released, another's": {
			with(func(s *Slot) { s.Released, s.Nonce, s.Term = true, "x", 9 }), "released", false,
		},
		"taken over": {
			with(func(s *Slot) { s.Node, s.Nonce, s.Term = "other", "x", 6 }), "node other () holds the worker", false,
		},
		"our node, new nonce": {
			with(func(s *Slot) { s.Nonce, s.Term = "x", 6 }), "node me () holds the worker", false,
		},
		"an older copy": {
			with(func(s *Slot) { s.Node, s.Nonce, s.Term = "other", "x", 4 }), "node other () holds the worker", true,
		},
		"kept for its holder":   {&Slot{LeaseUntil: 5, StandsIn: true}, "holds the worker", true},
		"unreadable":            {&Slot{Term: -1}, "holds the worker", true},
		"equal term, confirmed": {with(func(s *Slot) { s.Node, s.Nonce = "other", "x" }), "holds the worker", false},
		"equal term, unconfirmed": {
			with(func(s *Slot) { s.Node, s.Nonce, s.Confirmed = "other", "x", false }), "holds the worker", true,
		},
	} {
		err := mayResume(tc.found, mine)
		if tc.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var no *NotOursError
		if !errors.As(err, &no) || no.Worker != 7 || !strings.Contains(no.Reason, tc.says) || no.Lost != tc.lost {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

func TestAvailability(t *testing.T) {
	const now, grace = 1_000_000, 5_000
	cl := Cluster{LeaseMs: millis(labW)}
	for name, tc := range map[string]struct {
		slot Slot
		live bool
		// leader is how far the leader's clock is ahead of ours, in milliseconds.
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

func TestNoncesDiffer(t *testing.T) {
	if a, b := store.Nonce(), store.Nonce(); len(a) != 16 || a == b {
		t.Errorf("%q, %q", a, b)
	}
}
