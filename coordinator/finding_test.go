package coordinator

import (
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

func (f Finding) String() string { return [...]string{"ours", "fenced", "lost"}[f] }

func TestSlotFinding(t *testing.T) {
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
func TestFindingGoesByTheHighestIncarnationSeen(t *testing.T) {
	ours := Claim{Owner: Owner{Node: "a"}, Nonce: "a", Term: 1, Incarnation: 2}
	v := recordPair{cl: &Cluster{UUID: "c", Incarnation: 2}, slot: &Slot{Node: "a", Nonce: "a", Term: 1, Incarnation: 2}}
	for seen, want := range map[int64]Finding{2: FoundOurs, 3: FoundLost} {
		got, why := (holderState{Claim: ours}).finding(v, Cluster{UUID: "c", Incarnation: seen})
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

func TestNoncesDiffer(t *testing.T) {
	if a, b := store.Nonce(), store.Nonce(); len(a) != 16 || a == b {
		t.Errorf("%q, %q", a, b)
	}
}
