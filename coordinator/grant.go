package coordinator

import (
	"fmt"
	"time"
)

// pend begins the next grant of a slot, over the record old, with a new term and nonce. It saves both as pending
// before anything is written to ZooKeeper (C9).
//
// Scenario: the write of a grant arrives, its answer is lost, and the process is killed. The next process must know the
// nonce that it finds, or it takes its own record for another node's.
func (c *Coordinator) pend(h *holderState, old Slot) error {
	claim := h.Claim
	//mutant:c24-term-below-the-one-found by TestTakeAwayOfAnOlderCopy -> claim.PendingTerm = h.Term + 1
	claim.PendingTerm = max(h.Term, old.Term) + 1
	claim.PendingNonce = c.Nonce()
	//mutant:c9-written-before-stored by TestStoredBeforeWritten -> gen, err := h.Generation, error(nil)
	gen, err := c.Ledger.Save(claim)
	if err != nil { // an earlier grant stays pending
		return fmt.Errorf("saving the claim before writing it to ZooKeeper: %w", err)
	}
	h.notePending(claim, gen)
	return nil
}

// nextClaim returns the claim with the pending grant as its own. Its record is the grant.
func (c Claim) nextClaim() Claim {
	c.Term, c.Nonce = c.PendingTerm, c.PendingNonce
	c.PendingTerm, c.PendingNonce = 0, ""
	return c
}

// record returns the slot's record as this node writes it over the old one. Its lease bound is never below the old
// one's or ours (C3), and a lease does not raise it above the horizon (C23). A lease of 0 means that the clock is not
// trusted: it is reported, and moves no bound. cl is the cluster's record as the same write leaves it.
func (c Claim) record(e evidence, cl Cluster, old Slot, lease time.Duration, phase string, confirmed bool) Slot {
	s, horizon := e.self, e.usableHorizon(cl, confirmed)
	s.Node, s.Ticket, s.Term, s.Nonce = c.Node, c.Ticket, c.Term, c.Nonce
	s.Phase, s.Confirmed = phase, confirmed
	s.Incarnation, s.ClockWrong = cl.Incarnation, lease <= 0
	s.LeaseUntil = max(old.LeaseUntil, c.LeaseUntil)
	s.ReportedClock = e.now
	s.Generation = c.Generation
	if lease > 0 {
		//mutant:c3-lease-bound-goes-down by sim -> s.LeaseUntil = min(e.now+lease.Milliseconds(), horizon)
		s.LeaseUntil = max(s.LeaseUntil, min(e.now+lease.Milliseconds(), horizon))
	}
	s.inherit(old, e.now)
	return s
}

// phaseConfirming is the phase, for people, in the record of a grant. The next heartbeat writes the node's own.
const phaseConfirming = "confirming"

// traceGrant traces that the process begins to hold the slot: how is acquired, resumed or restored. e is as of the
// decision, and slot the record that was written over old.
func (c *Coordinator) traceGrant(how string, cl Cluster, e evidence, old, slot Slot) {
	h := c.holder
	c.Trace.Step(how, "node", h.Node, "worker", h.Worker, "term", h.Term, "nonce", h.Nonce, "inc", cl.Incarnation,
		"floor", h.Floor, "reserved", h.ReservedUntil, "own_lease", h.LeaseUntil, "ever", h.EverConfirmed,
		"lease", slot.LeaseUntil, "confirmed", slot.Confirmed, "version", h.Chain.Version,
		"found_term", old.Term, "found_nonce", old.Nonce, "found_lease", old.LeaseUntil, "found_free", old.vacated(),
		"frozen", cl.FrozenUntil, "now", e.now, "leader", e.leaderNow(), "sent", e.at.Boot)
}
