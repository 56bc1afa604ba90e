package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// A node that starts again finds an older copy of its record. It freezes registration, because it may be the only one
// that notices the loss.
func TestResumeFreezesOnAnOlderCopy(t *testing.T) {
	for name, away := range map[string]time.Duration{"lease runs": time.Second, "lease ran out": time.Hour} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			copied := l.Mem.Snapshot()
			l.serve(time.Minute)
			a.crash()
			l.pass(away)
			l.Mem.Restore(copied)
			l.Mem.ExpireOrphans()
			l.forget()
			a.must(a.start())
			if cl := l.cluster(); !cl.Frozen(l.now + millis(labW)) {
				t.Errorf("not frozen: %+v", cl)
			}
			l.pass(labConfirm)
			leased := a.claim.Leased(a.clock(), a.Boot())
			if beat := a.mustBeat(); beat.Confirmed != leased {
				t.Errorf("lease runs: %v, confirmed: %v", leased, beat.Confirmed)
			}
			l.disjoint()
		})
	}
}

// A node whose ticket is gone tries to resume again and again. Its clock is refused, or ZooKeeper does not answer. At
// most one ticket is left.
func TestRefusedResumeLeavesNoTickets(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	a.must(a.halt())
	l.remove(a.disk.claim.Ticket)
	was := l.slot(0)
	for range 5 {
		a.recall()
		if _, err := a.co.Resume(t.Context(), labLease, refuseClock); !errors.Is(err, errClock) {
			t.Fatal(err)
		}
	}
	a.hook = faulty(memzk.FailBefore, 0, 1000, touching("", livePath))
	for range 5 {
		if _, err := a.co.Resume(t.Context(), labLease, a.trust); !errors.Is(err, store.ErrUnreachable) {
			t.Fatal(err)
		}
	}
	a.hook = nil
	if names := l.children(ticketsPath); len(names) > 1 || !same(l.slot(0), was) {
		t.Errorf("left %q, %+v", names, l.slot(0))
	}
	a.must(a.start())
	if names := l.children(ticketsPath); len(names) != 1 || ticketsPath+"/"+names[0] != a.claim.Ticket {
		t.Errorf("left %q, ours is %s", names, a.claim.Ticket)
	}
}

// ZooKeeper has lost the tickets, and their numbers began again. So the ticket that a node knows by name belongs to
// another node, and must be left alone.
func TestTicketOfAnotherIsLeftAlone(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	a.must(a.halt())
	l.remove(a.disk.claim.Ticket)
	l.remove(ticketsPath)
	b := l.serving("B")
	if b.claim.Ticket != a.disk.claim.Ticket {
		t.Fatalf("%s and %s: the numbers have not begun again", a.disk.claim.Ticket, b.claim.Ticket)
	}
	a.must(a.start())
	if holder, err := a.co.ticketHolder(t.Context(), b.claim.Ticket); err != nil || holder != b.claim.Node ||
		a.claim.Ticket == b.claim.Ticket {
		t.Errorf("%s is %s's, %v; A has %s", b.claim.Ticket, holder, err, a.claim.Ticket)
	}
	a.confirm()
	a.h.Ticket = b.claim.Ticket // as an older record might say
	a.must(a.leave())
	if holder, _ := b.co.ticketHolder(t.Context(), b.claim.Ticket); holder != b.claim.Node {
		t.Error("B's ticket was deleted")
	}
}

// A node saves a claim before the write that carries it: when it registers, resumes, reports a restart, and puts its
// record back.
func TestStoredBeforeWritten(t *testing.T) {
	l := newLab(t, 2)
	a := l.node("A")
	stored := 0
	a.disk.saving = func(c Claim) {
		if data, _, err := l.admin.Get(t.Context(), SlotPath(c.Worker)); err == nil && c.PendingNonce != "" {
			stored++
			if s := parseSlot(data); s.Nonce == c.PendingNonce {
				t.Errorf("%+v was written before it was stored", s)
			}
		}
	}
	a.hook = func(c memzk.Call) memzk.Fault {
		for _, o := range c.Ops {
			if set, ok := o.(store.SetOp); ok && set.Path == SlotPath(0) {
				if s := parseSlot(set.Data); s.Nonce != a.disk.claim.Nonce && s.Nonce != a.disk.claim.PendingNonce {
					t.Errorf("%+v is written, %+v is stored", s, a.disk.claim)
				}
			}
		}
		return memzk.NoFault
	}
	a.must(a.register())
	a.confirm()
	a.crash()
	a.must(a.resume())
	a.confirm()
	a.crash()
	a.startAlone()
	a.mustBeat()
	a.confirm()
	l.put(0, Slot{})
	l.forget()
	a.mustBeat()
	if stored != 4 {
		t.Errorf("%d claims stored", stored)
	}
}

func TestMayResume(t *testing.T) {
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
