package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Resume renews the slot of the local record. It calls check with the clocks of the leader
// and of the peers, then writes the slot with the next term and a new nonce.
//
// The claim's floor is at least the reserved bound then, which the earlier process may
// have reached. Its lease bound is that of the local record: below it the node may issue at
// once. The grant's LeaseUntil counts once the slot is confirmed.
//
// Errors are *NotOursError (register as a new node), *OtherClusterError, ErrNoCluster,
// those of check and those of the store. The node may start from the local record alone
// only after store.ErrUnreachable or a *NotOursError with Lost.
func (h *Hold) Resume(ctx context.Context, lease time.Duration, check ClockCheck) (Grant, error) {
	if err := h.co.Settle(ctx); err != nil {
		return Grant{}, err
	}
	if _, err := h.resumable(ctx); err != nil {
		return Grant{}, err
	}
	ticket := h.Ticket
	clock, err := h.co.touchTicket(ctx, &h.Claim)
	if err != nil {
		return Grant{}, err
	}
	h.co.reading = clock
	grant, err := h.resumeWith(ctx, clock, lease, check)
	if err != nil && h.Ticket != ticket && !errors.Is(err, store.ErrUnreachable) {
		h.co.dropTicket(ctx, h.Ticket, h.Node)
		h.Ticket = ticket
	}
	return grant, err
}

// resumable reads the cluster's record and the slot. It returns an error if the claim does not hold the slot.
func (h *Hold) resumable(ctx context.Context) (view, error) {
	c := h.co
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return view{}, err
	}
	v, err := h.readView(ctx)
	switch {
	case err != nil:
		return view{}, err
	case v.cl == nil:
		return view{}, ErrNoCluster
	case v.cl.UUID != c.mine.UUID:
		return view{}, &OtherClusterError{Found: v.cl.UUID, Ours: c.mine.UUID}
	}
	err = JudgeResume(v.slot, h.Claim)
	var no *NotOursError
	if errors.As(err, &no) && h.Nonce != "" && (no.Lost || h.showsLoss(v, c.mine.UUID)) {
		c.Note(h.lossOf(v.cl, no.Reason)) // Register settles it
	}
	return v, err
}

func (h *Hold) resumeWith(ctx context.Context, clock Reading, lease time.Duration, check ClockCheck) (Grant, error) {
	peers, err := h.co.Peers(ctx, h.Worker)
	if err != nil {
		return Grant{}, err
	}
	if err := check(clock, peers); err != nil {
		return Grant{}, err
	}
	for {
		v, err := h.resumable(ctx)
		if err != nil {
			return Grant{}, err
		}
		grant, err := h.writeResumed(ctx, v, lease)
		if !errors.Is(err, store.ErrBadVersion) && !errors.Is(err, store.ErrNoNode) {
			grant.Clock = clock
			return grant, err
		}
	}
}

// writeResumed writes a slot that resumable returned. If ZooKeeper has older data than the
// claim, it raises the incarnation first.
func (h *Hold) writeResumed(ctx context.Context, v view, lease time.Duration) (Grant, error) {
	finding, why := h.judge(v, h.co.mine.UUID, h.co.seen)
	h.co.saw(*v.cl)
	if finding == FoundLost {
		cl, err := h.co.raise(ctx, h.lossOf(v.cl, why))
		if err != nil {
			return Grant{}, err
		}
		v.cl = &cl
	}
	h.adopt(*v.slot)
	//mutant:c6-resume-at-now by sim -> h.Floor = h.co.Now()
	h.Floor = max(h.Floor, h.ReservedUntil)
	return h.writeNextTerm(ctx, v, lease)
}

// writeNextTerm writes our slot with the next term. The record is confirmed only if the write goes on where the
// process before has stopped. Otherwise a holder that ZooKeeper has lost has time to come back.
func (h *Hold) writeNextTerm(ctx context.Context, v view, lease time.Duration) (Grant, error) {
	c, ranUntil := h.co, h.runsUntil(*v.slot)
	e := c.gather(Report{})
	goesOn, cl := h.goesOn(v, e), v.cl.withHorizon(e.agreedNow(), lease)
	slot, err := h.nextGrant(cl, *v.slot, lease, goesOn)
	if err != nil {
		return Grant{}, err
	}
	before := h.holding
	e = c.gather(Report{}) // once more after the disk, which may take long
	if goesOn = goesOn && h.goesOn(v, e); !goesOn {
		h.Heard.Began, h.Heard.Sent = 0, 0 // the version stays: older data than that show a loss
	}
	slot.Confirmed, slot.UnbrokenMs = goesOn, h.Heard.Unbroken(e.boot, e.beat).Milliseconds()
	d := decision{slot: slot, confirms: goesOn}
	if cl != *v.cl {
		d.cluster = &cl
	}
	written, _, err := c.write(ctx, d, v, h.Worker)
	if err != nil {
		return Grant{}, err
	}
	clock := c.setReading(slot.ReportedClock, written)
	h.begin(*v.cl, e.boot, v.stat.Version+1, slot.LeaseUntil)
	grant := Grant{LeaseUntil: slot.LeaseUntil, Clock: clock}
	e = c.gather(Report{})
	// This process does not know what the earlier process saw of ZooKeeper.
	if e.hasPassed(ranUntil, clock.Stamp) {
		h.doubt = doubt{raised: true, now: clock.Sent, stamp: clock.Stamp}
		goesOn = false
	}
	//mutant:c10-restart-does-not-confirm by sim -> if _ = before; false {
	if !goesOn || !before.goesOn(v, e) { // the write may have been late
		grant.Wait = confirmTime(*v.cl)
	}
	// If the record was written confirmed all the same, the next heartbeat writes it again, unconfirmed.
	h.waits(grant.Wait, slot.Confirmed && grant.Wait > 0)
	return grant, nil
}
