package coordinator

import (
	"errors"
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
