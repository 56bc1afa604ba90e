package coordinator

import "fmt"

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
