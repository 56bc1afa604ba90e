package coordinator

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/internal/core/store"
)

func TestJudgeSlot(t *testing.T) {
	mine := Claim{Node: "me", Term: 5, Nonce: "n5", PendingTerm: 6, PendingNonce: "n6", LeaseUntil: 100, Incarnation: 7}
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
		"equal term, confirmed":            {held("other", "x", 5, true), FoundFenced},
		"equal term, unconfirmed":          {held("other", "x", 5, false), FoundLost},
		"lower term, confirmed":            {held("other", "x", 4, true), FoundLost},
		"lower term, unconfirmed":          {held("other", "x", 4, false), FoundLost},
		"later incarnation, confirmed":     {of(8, held("other", "x", 1, true)), FoundFenced},
		"later incarnation, unconfirmed":   {of(8, held("other", "x", 9, false)), FoundLost},
		"earlier incarnation, confirmed":   {of(6, held("other", "x", 9, true)), FoundLost},
		"earlier incarnation, unconfirmed": {of(6, held("other", "x", 9, false)), FoundLost},
		"ours, of any incarnation":         {of(8, held("me", "n5", 5, true)), FoundOurs},
		"kept for its holder":              {&Slot{LeaseUntil: 9, Lost: true}, FoundLost},
		"never held":                       {new(freeSlot()), FoundLost},
		"unreadable":                       {&Slot{Term: -1}, FoundLost},
		"no nonce":                         {held("me", "", 4, true), FoundLost},
	} {
		if got := JudgeSlot(tc.found, mine); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if got := JudgeSlot(held("me", "", 5, true), Claim{Node: "me", Term: 5}); got != FoundFenced {
		t.Errorf("a claim and a record without nonces: %s", got)
	}
}

func TestJudgeCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		found *Cluster
		want  Finding
	}{
		"absent":               {nil, FoundLost},
		"ours":                 {&Cluster{UUID: "c", Incarnation: 5}, FoundOurs},
		"ours, confirmed":      {&Cluster{UUID: "c", Incarnation: 5, Confirmed: true}, FoundOurs},
		"ours, a later one":    {&Cluster{UUID: "c", Incarnation: 6}, FoundOurs},
		"ours, an older one":   {&Cluster{UUID: "c", Incarnation: 4, Confirmed: true}, FoundLost},
		"another, unconfirmed": {&Cluster{UUID: "d"}, FoundLost},
		"another, confirmed":   {&Cluster{UUID: "d", Confirmed: true}, FoundFenced},
	} {
		if got := JudgeCluster(tc.found, "c", 5); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A rightful next holder has a later first term, and our holding in its history.
func TestWasLost(t *testing.T) {
	mine := Claim{Node: "me", Term: 5, Nonce: "n5", LeaseUntil: 100, Confirmed: true, Incarnation: 7}
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
		"we never confirmed":     {func(_ *Slot, c *Claim) { c.Confirmed = false }, false},
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
	mine := Claim{Node: "me", Worker: 7, Term: 5, Nonce: "n5", PendingTerm: 6, PendingNonce: "n6", Generation: 40,
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
		"kept for its holder":   {&Slot{LeaseUntil: 5, Lost: true}, "holds the worker", true},
		"unreadable":            {&Slot{Term: -1}, "holds the worker", true},
		"equal term, confirmed": {with(func(s *Slot) { s.Node, s.Nonce = "other", "x" }), "holds the worker", false},
		"equal term, unconfirmed": {
			with(func(s *Slot) { s.Node, s.Nonce, s.Confirmed = "other", "x", false }), "holds the worker", true,
		},
	} {
		err := JudgeResume(tc.found, mine)
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

func TestJudgeFree(t *testing.T) {
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
		"bound past by the leader's only": {slot: Slot{Term: 1, LeaseUntil: now + 1}, leader: 5000,
			want: Disconnected},
		"bound past by ours only": {slot: Slot{Term: 1, LeaseUntil: now - grace}, leader: -1,
			want: Disconnected},
		"released": {slot: Slot{Term: 1, LeaseUntil: now + 10_000, Released: true},
			want: Free},
		"released, more than 10 s ahead": {slot: Slot{Term: 1, LeaseUntil: now + 10_001, Released: true},
			want: Releasing},
		"released, ahead by the leader's": {slot: Slot{Term: 1, LeaseUntil: now + 10_000, Released: true}, leader: -1,
			want: Releasing},
		"kept for its holder":              {slot: Slot{LeaseUntil: now + 1, Lost: true}, want: Disconnected},
		"kept for its holder, long enough": {slot: Slot{LeaseUntil: now - grace, Lost: true}, want: Free},
		"unreadable":                       {slot: Slot{Term: -1}, want: Disconnected},
		"released and live (it is leaving)": {slot: Slot{Term: 1, LeaseUntil: 1, Released: true}, live: true,
			want: Live},
	} {
		if got := cl.JudgeFree(tc.slot, tc.live, now, now+tc.leader); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	// With a longest lease of 12 s, a slot stays with its holder for 1 s after the bound.
	short := Cluster{LeaseMs: 12_000}
	if got := short.JudgeFree(Slot{Term: 1, LeaseUntil: now - 1000}, false, now, now); got != Free {
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
			says: "(1 live, 0 disconnected, 0 stopped, 0 releasing). No lease is about to expire. Create a cluster with more worker bits, or run fewer nodes"},
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

func TestTicketNumber(t *testing.T) {
	for name, want := range map[string]int64{
		"/tickets/n-0000000007": 7,
		"n-0000000000":          0,
		"n-2147483647":          math.MaxInt32,
		"n--2147483648":         math.MinInt32,
		"n--1000000000":         -1_000_000_000,
		"n--999999999":          -999_999_999,
		"n--000000001":          -1,
		"a-b-c-0000000012":      12,
		"a-b--2147483648":       math.MinInt32,
		"a--b-0000000012":       12,
		"7-0000000012":          12,
		"/a-1/b-2/n-0000000003": 3,
		"node-10-0000000010":    10,
	} {
		if got, err := ticketNumber(name); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	for _, name := range []string{
		"", "/", "n", "n-", "n--", "n-1", "n-000000001", "n-00000000001", "0000000001", "n-000000000a", "n-0000000001x",
		"n--1", "n--00000000001", "n-٠٠٠٠٠٠٠٠٠٠", "under_score0x000000001",
	} {
		if got, err := ticketNumber(name); err == nil {
			t.Errorf("%q is ticket %d", name, got)
		}
	}
}

// ticketNumber returns every int32 that ZooKeeper can append to a name with %010d.
func TestTicketNumberProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32().Draw(t, "n")
		prefix := rapid.StringMatching(`[a-z0-9-]{0,8}[a-z0-9]-`).Draw(t, "prefix")
		if got, err := ticketNumber(fmt.Sprintf("/tickets/%s%010d", prefix, n)); err != nil || got != int64(n) {
			t.Fatalf("%d, %v", got, err)
		}
	})
}

func TestFirstSlot(t *testing.T) {
	for _, tc := range []struct {
		ticket int64
		slots  int
		want   int
	}{
		{0, 1024, 0}, {1023, 1024, 1023}, {1024, 1024, 0}, {1100, 1024, 76}, {5, 1, 0},
		{-1, 1024, 1023}, {-1024, 1024, 0}, {math.MinInt32, 1024, 0}, {math.MinInt32, 3, 1}, {math.MaxInt32, 1 << 24,
			1<<24 - 1},
	} {
		if got := firstSlot(tc.ticket, tc.slots); got != tc.want {
			t.Errorf("%d of %d: %d, want %d", tc.ticket, tc.slots, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 1<<24).Draw(t, "slots")
		ticket := rapid.Int64Range(math.MinInt32, math.MaxInt32).Draw(t, "ticket")
		got := firstSlot(ticket, slots)
		if got < 0 || got >= slots || (ticket-int64(got))%int64(slots) != 0 {
			t.Fatalf("%d", got)
		}
		if next := firstSlot(ticket+1, slots); next != (got+1)%slots {
			t.Fatalf("%d follows %d", next, got)
		}
	})
}

func instants() *rapid.Generator[int64] { return rapid.Int64Range(0, 4_000_000_000_000) }

func slots() *rapid.Generator[Slot] {
	return rapid.Custom(func(t *rapid.T) Slot {
		return Slot{
			Node: rapid.SampledFrom([]string{"", "me", "other"}).Draw(t, "node"), Nonce: rapid.SampledFrom([]string{"",
				"a", "b", "c"}).Draw(t, "nonce"),
			Term: rapid.Int64Range(-1, 4).Draw(t, "term"), Incarnation: rapid.Int64Range(0, 2).Draw(t, "incarnation"),
			LeaseUntil: instants().Draw(t, "h"),
			Confirmed:  rapid.Bool().Draw(t, "confirmed"), Stopped: rapid.Bool().Draw(t, "stopped"),
			Released: rapid.Bool().Draw(t, "released"), Lost: rapid.Bool().Draw(t, "lost"),
			Generation: rapid.Uint64Range(0, 9).Draw(t, "generation"),
		}
	})
}

func claims() *rapid.Generator[Claim] {
	return rapid.Custom(func(t *rapid.T) Claim {
		return Claim{
			Node: "me", Worker: 3, Term: rapid.Int64Range(0, 4).Draw(t, "term"), Nonce: rapid.SampledFrom([]string{"",
				"a"}).Draw(t, "nonce"),
			PendingNonce: rapid.SampledFrom([]string{"", "b"}).Draw(t, "pending"), Confirmed: rapid.Bool().Draw(t,
				"confirmed"),
			LeaseUntil: instants().Draw(t, "h"), Generation: rapid.Uint64Range(0, 9).Draw(t, "generation"),
			Incarnation: rapid.Int64Range(0, 2).Draw(t, "incarnation"),
		}
	})
}

// The record that a holder writes carries the holder's claim. It does not lower the lease bound (LeaseUntil).
func TestRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, claim := slots().Draw(t, "old"), claims().Draw(t, "claim")
		now, lease := instants().Draw(t, "now"), rapid.SampledFrom([]time.Duration{0, time.Minute, labW}).Draw(t,
			"lease")
		e := evidence{now: now, self: Slot{Labels: Labels{Name: "n"}, HeartbeatMs: 1000, RTTMs: 3}}
		s := claim.record(e, Cluster{}, old, lease, 1<<62)
		if s.Node != "me" || s.Term != claim.Term || s.Nonce != claim.Nonce || s.Generation != claim.Generation ||
			s.Name != "n" || s.ReportedClock != now || s.HeartbeatMs != 1000 || s.RTTMs != 3 {
			t.Fatalf("%+v", s)
		}
		if s.Confirmed || s.Stopped || s.Released || s.Lost || s.StoppedAt != 0 {
			t.Fatalf("carried over: %+v", s)
		}
		if s.LeaseUntil < old.LeaseUntil || s.LeaseUntil < claim.LeaseUntil {
			t.Fatalf("went down: %+v", s)
		}
		if lease == 0 && s.LeaseUntil != max(old.LeaseUntil, claim.LeaseUntil) {
			t.Fatalf("moved by a clock that is not trusted: %+v", s)
		}
		if lease > 0 && s.LeaseUntil < now+lease.Milliseconds() {
			t.Fatalf("not extended: %+v", s)
		}
	})
}

// A record is ours only if it has our node and one of our nonces. In the same incarnation, another record always fences
// if its term is higher, and never if its term is lower. A record of a later incarnation fences if it is confirmed. A
// record of an earlier one never fences.
func TestJudgeSlotProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		found, mine := slots().Draw(t, "found"), claims().Draw(t, "mine")
		got := JudgeSlot(&found, mine)
		ours := found.Node == mine.Node && found.Nonce != "" && (found.Nonce == mine.Nonce ||
			found.Nonce == mine.PendingNonce)
		switch {
		case ours != (got == FoundOurs):
			t.Fatalf("%s", got)
		case ours:
		case found.Incarnation != mine.Incarnation:
			if fenced := found.Incarnation > mine.Incarnation && found.Confirmed; fenced != (got == FoundFenced) {
				t.Fatalf("%s", got)
			}
		case found.Term > mine.Term && got != FoundFenced, found.Term < mine.Term && got != FoundLost:
			t.Fatalf("%s", got)
		}
		err := JudgeResume(&found, mine)
		if err == nil && (!ours || found.Released || found.Generation > mine.Generation) {
			t.Fatal("resumed")
		}
		if no := (*NotOursError)(nil); errors.As(err, &no) && no.Lost && got != FoundLost {
			t.Fatal("put back what another has")
		}
		h := Hold{holding: holding{Claim: mine}}
		h.adopt(found)
		if adopted := h.Held(); ours && (adopted.Nonce != found.Nonce ||
			adopted.Nonce == mine.PendingNonce && adopted.PendingNonce != "") {
			t.Fatalf("adopted %+v", adopted)
		}
	})
}

// A slot that is not live is free if and only if it can be read and its lease bound has passed by both clocks. A
// released slot is free up to 10 s before the bound, any other slot only after the grace time.
func TestJudgeFreeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := slots().Draw(t, "slot")
		now, leader := instants().Draw(t, "now"), instants().Draw(t, "leader")
		cl := Cluster{LeaseMs: rapid.Int64Range(1, 200_000).Draw(t, "lease")}
		got := cl.JudgeFree(s, false, now, leader)
		if got != cl.JudgeFree(s, false, leader, now) || cl.JudgeFree(s, true, now, leader) != Live {
			t.Fatal("not symmetric, or live and free")
		}
		slack := -min(5_000, cl.LeaseMs/12)
		if s.Released {
			slack = 10_000
		}
		if free := s.Term >= 0 && s.LeaseUntil <= min(now, leader)+slack; free != (got == Free) {
			t.Fatalf("%d", got)
		}
	})
}

func TestParseSlot(t *testing.T) {
	held := Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: 5}
	for name, s := range map[string]Slot{
		"never held":          freeSlot(),
		"held":                held,
		"kept for its holder": {LeaseUntil: 5, Lost: true},
		"released":            {Node: "n", Nonce: "x", Term: 4, LeaseUntil: 5, Released: true},
		"with everything": {Node: "n", Ticket: "t", Nonce: "x", Term: 4, LeaseUntil: 5, Confirmed: true, Stopped: true,
			StoppedAt: 4, ReportedClock: 2,
			Generation: math.MaxUint64, HeartbeatMs: 1, RTTMs: 1, State: "serving", Labels: Labels{Name: "a", Host: "b",
				PID: 3, Address: "c", Version: "d", Admin: "e"},
			FromTerm: 2, Granted: 1, ReleasedBy: "me", History: History{{Node: "m", Ended: EndedTaken}}},
	} {
		if got := parseSlot(s.marshal()); !same(got, s) {
			t.Errorf("%s: %+v became %+v", name, s, got)
		}
	}
	if s := parseSlot([]byte(`{"node":"n","nonce":"x","term":1,"lease_until":5,"of":"a later release","deep":{"er":[1]}}`)); !same(s, held) {
		t.Errorf("unknown fields: %+v", s)
	}
	for _, b := range []string{
		"", "null", "{}", "[]", "7", `"x"`, "true", "{", `{"term":1}`,
		`{"term":-1,"node":"n","nonce":"x","lease_until":5}`, `{"released":false}`, `{"lost":true}`,
		`{"node":"n","nonce":"x","term":1}`, `{"node":"n","term":1,"lease_until":5}`,
		`{"nonce":"x","term":1,"lease_until":5}`, `{"node":"n","nonce":"x","term":1,"lease_until":-5}`,
		`{"node":"n","nonce":"x","term":"1","lease_until":5}`, `{"node":"n","nonce":"x","term":1e300,"lease_until":5}`,
		`{"node":"n","nonce":"x","lease_until":5}`, `{"lease_until":5}`,
		`{"node":"n","nonce":"x","term":1,"lease_until":5}{}`, "\x00\xff", strings.Repeat("[", 100_000),
	} {
		if s := parseSlot([]byte(b)); !same(s, Slot{Term: -1}) {
			t.Errorf("%.40q is %+v", b, s)
		}
	}
	if s := parseSlot(nil); s.Term != -1 {
		t.Errorf("nothing is %+v", s)
	}
}

// same reports whether two records are equal.
func same(a, b Slot) bool { return string(a.marshal()) == string(b.marshal()) }

// Whatever data a slot has, no node may take it without a lease bound, unless it was never held. A record that can be
// read stays the same when it is written and read again.
func FuzzParseSlot(f *testing.F) {
	f.Add([]byte(`{"node":"n","nonce":"x","term":1,"lease_until":5}`))
	f.Add([]byte(`{"released":true}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parseSlot(b)
		if (Cluster{}).JudgeFree(s, false, math.MaxInt32, math.MaxInt32) == Free && s.LeaseUntil == 0 && !(s.Released &&
			s.Nonce == "" && s.Term == 0) {
			t.Errorf("%q is free without a bound: %+v", b, s)
		}
		if s.Term >= 0 {
			if again := parseSlot(s.marshal()); !same(again, s) {
				t.Errorf("%+v became %+v", s, again)
			}
		}
	})
}

func TestParseCluster(t *testing.T) {
	good := Cluster{UUID: "u", Layout: "l", Slots: 4, HighestSlot: -1, LeaseMs: 1, ConfirmMs: 2, Confirmed: true,
		FrozenUntil: 3, Incarnation: 6}
	if got, err := parseCluster(good.marshal()); got != good || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, b := range []string{"", "null", "{}", "x", `{"uuid":"u"}`, `{"slots":4}`, `{"uuid":"u","slots":0}`,
		`{"uuid":"u","slots":"4"}`} {
		if c, err := parseCluster([]byte(b)); err == nil || !strings.Contains(err.Error(), "/cluster") {
			t.Errorf("%q is %+v, %v", b, c, err)
		}
	}
	older := `{"uuid":"u","slots":4,"used":63,"settled":true}`
	if c, err := parseCluster([]byte(older)); err == nil || !strings.Contains(err.Error(), "another release") {
		t.Errorf("an older release's record is %+v, %v", c, err)
	}
	newer := `{"uuid":"u","slots":4,"highest_slot":1,"needs":"x"}`
	if c, err := parseCluster([]byte(newer)); err == nil || !strings.Contains(err.Error(), "Upgrade it") {
		t.Errorf("a newer release's record is %+v, %v", c, err)
	}
}

func TestNew(t *testing.T) {
	ok := Config{Store: store.NewMem(nil).Session(), Now: func() int64 { return 0 }, Boot: func() int64 { return 0 },
		Ledger: &disk{}}
	for name, spoil := range map[string]func(*Config){
		"store": func(c *Config) { c.Store = nil }, "clock": func(c *Config) { c.Now = nil },
		"boot clock": func(c *Config) { c.Boot = nil },
		"ledger":     func(c *Config) { c.Ledger = nil }, "interval": func(c *Config) { c.Interval = -1 },
	} {
		cfg := ok
		spoil(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("no %s: accepted", name)
		}
	}
	c, err := New(ok)
	if err != nil || c.Interval != DefaultHeartbeat || c.HighestSlot() != -1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if a, b := c.Nonce(), c.Nonce(); len(a) != 16 || a == b {
		t.Errorf("nonces %q, %q", a, b)
	}
}

// Another node has raised the incarnation. Before our record was written in it, ZooKeeper was put back to data from
// before.
func TestJudgeGoesByTheHighestIncarnationSeen(t *testing.T) {
	ours := Claim{Node: "a", Nonce: "a", Term: 1, Incarnation: 2}
	v := view{cl: &Cluster{UUID: "c", Incarnation: 2}, slot: &Slot{Node: "a", Nonce: "a", Term: 1, Incarnation: 2}}
	for seen, want := range map[int64]Finding{2: FoundOurs, 3: FoundLost} {
		got, why := (holding{Claim: ours}).judge(v, Cluster{UUID: "c", Incarnation: seen})
		if got != want {
			t.Errorf("seen %d: %s, %s", seen, got, why)
		}
	}
}
