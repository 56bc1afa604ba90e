package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
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

// phaseConfirming is the phase, for people, in the record of a grant. The next heartbeat writes the node's own.
const phaseConfirming = "confirming"

// writeAcquired writes a free slot as ours (C8). The error is store.ErrBadVersion or store.ErrNoNode if the slot or the
// cluster's record has changed.
func (c *Coordinator) writeAcquired(ctx context.Context, h *holderState, worker int, v recordPair, now int64,
	lease time.Duration,
) error {
	cl, old := v.cl.withHorizon(c.gather(Reading{}).earliest(), lease), *v.slot
	// The floor is above all that earlier holders may have used (C2).
	//mutant:c2-floor-at-now by sim -> floor := now
	floor := max(now, old.LeaseUntil)
	*h = newHolderState(Claim{
		Owner: Owner{h.Node, worker}, Ticket: h.Ticket, Term: old.Term, Floor: floor, ReservedUntil: floor,
	})
	if err := c.pend(h, old); err != nil {
		return err
	}
	e := c.gather(Reading{})
	slot := h.nextClaim().record(e, cl, old, lease, phaseConfirming, false)
	//mutant:c8-acquire-over-any-version by sim -> version := store.AnyVersion
	version := v.slotStat.Version
	write := store.SetOp{Path: SlotPath(worker), Data: slot.marshal(), Version: version}
	if err := c.Store.Multi(ctx, clusterOp(v, cl), write); err != nil {
		return err // the outcome may be unknown: the next start reads the saved claim
	}
	w := timeguard.Stamped{Sent: e.at, Acked: c.Elapsed.Now()}
	h.noteGrantAcked(w, v.slotStat.Version+1, c.Interval, cl.Incarnation, slot.LeaseUntil)
	c.holder = h
	c.traceGrant("acquired", cl, e, old, slot)
	c.noteCluster(cl)
	if old.Ticket != "" && old.Ticket != h.Ticket {
		c.dropTicket(ctx, old.Ticket, old.Node)
	}
	h.becomeConfirming(c.Elapsed.AtLeast() + int64(cl.ConfirmTime()))
	return nil
}

// writeNextTerm writes our slot with the next term. The record is confirmed only if the write goes on where the process
// before has stopped (C13). Otherwise a holder that ZooKeeper has lost has time to come back (C10).
func (c *Coordinator) writeNextTerm(ctx context.Context, v recordPair, lease time.Duration) (
	confirm time.Duration, _ error,
) {
	h := c.holder
	if err := c.pend(h, *v.slot); err != nil {
		return 0, err
	}
	e := c.gather(Reading{}) // after the disk, which may take long
	confirmed := h.continuesChain(v, e)
	if !confirmed {
		h.breakChain()
	}
	d := decision{confirms: confirmed, cluster: v.cl.withHorizon(e.earliest(), lease)}
	d.slot = h.nextClaim().record(e, d.cluster, *v.slot, lease, phaseConfirming, confirmed)
	written, _, err := c.write(ctx, d, v, h.Worker)
	if err != nil {
		return 0, err
	}
	clock := c.setReading(e.now, written)
	stamped := c.correctClocks(e.at, written.Mtime)
	before := e
	before.at = stamped.Sent
	e = c.gather(Reading{}) // again, with the comparison of clocks that this write has given
	// Scenario: the process stands still between its look at the clock and its write, as by SIGSTOP. Others act
	// meanwhile, and ZooKeeper gets data back in which the record has the version that the late write expects (C13).
	inTime := confirmed && h.continuesChain(v, e)
	h.noteGrantAcked(stamped, v.slotStat.Version+1, c.Interval, d.cluster.Incarnation, d.slot.LeaseUntil)
	c.traceGrant("resumed", d.cluster, before, *v.slot, d.slot)
	// If the lease had run out by the leader's clock, another node may have held the slot since (C26).
	if e.hasPassed(h.knownBound(*v.slot), clock.Stamp) {
		h.noteExpired(clock.Sent, clock.Stamp)
	}
	if !inTime || h.expiry.state == expired {
		confirm = v.cl.ConfirmTime()
	}
	// If the record was written confirmed all the same, the next heartbeat writes it again, unconfirmed.
	h.becomeConfirming(c.Elapsed.AtLeast() + int64(confirm))
	return confirm, nil
}

// writeRestored creates our record, or writes it over the record found, with a higher term than that has.
func (c *Coordinator) writeRestored(ctx context.Context, cl Cluster, v recordPair, r Report) (Beat, error) {
	h := c.holder
	var old Slot
	if v.slot != nil && !v.slot.StandsIn { // a stand-in's bound is no lease of ours
		old = *v.slot
	}
	h.Chain = noChain // that was of a record that is lost
	if err := c.pend(h, old); err != nil {
		return Beat{}, err
	}
	e := c.gather(Reading{})
	slot := h.nextClaim().record(e, cl, old, r.Lease, r.Phase, true)
	version, err := int32(0), error(nil)
	if v.slot == nil {
		err = create(ctx, c.Store, SlotPath(h.Worker), slot.marshal(), store.Persistent)
	} else {
		version = v.slotStat.Version + 1
		_, err = c.Store.Set(ctx, SlotPath(h.Worker), slot.marshal(), v.slotStat.Version)
	}
	if err != nil {
		return Beat{}, err
	}
	w := timeguard.Stamped{Sent: e.at, Acked: c.Elapsed.Now()}
	h.noteGrantAcked(w, version, c.Interval, cl.Incarnation, slot.LeaseUntil)
	c.traceGrant("restored", cl, e, old, slot)
	h.noteRestored()
	_, written, err := c.Store.Get(ctx, SlotPath(h.Worker))
	if err != nil {
		return Beat{}, err
	}
	e.at = c.correctClocks(e.at, written.Mtime).Sent
	beat := Beat{
		LeaseUntil: slot.LeaseUntil, Confirmed: true, Floor: h.Floor,
		FrozenUntil: cl.FrozenUntil, FrozenBy: cl.FrozenBy, Clock: c.setReading(e.now, written),
	}
	if slot.LeaseUntil > old.LeaseUntil {
		beat.bootEnd = bootEndOf(slot.LeaseUntil, e.now, e.at.Boot)
	}
	return beat, nil
}

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
