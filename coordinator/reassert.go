package coordinator

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/store"
)

// reassert puts our record back after ZooKeeper has lost it. First it freezes
// registration, because new nodes may be about to confirm. Our record gets a higher term than
// the one in ZooKeeper. why says how the loss was noticed, for the log.
func (h *Hold) reassert(ctx context.Context, v view, r Report, why string) (Beat, error) {
	l := h.lossOf(v.cl, why)
	cl, err := h.co.raise(ctx, l)
	if err != nil {
		return Beat{}, err
	}
	// Another holder may have frozen long ago. By the leader's clock now, check whether that
	// freeze is long enough.
	e := h.co.gather(r)
	clock, err := h.co.touchTicket(ctx, &h.Claim)
	if err == nil && cl.FrozenUntil < cl.lastLease(clock.Stamp) {
		cl, err = h.co.raise(ctx, l)
	}
	if err != nil {
		return Beat{}, err
	}
	// By our own clock the lease still runs, but that clock may have gone back.
	//mutant:c26-lapsed-holder-puts-its-record-back by TestSlowClockPutsNothingBack -> if h.doubted() {
	if h.doubted() || e.hasPassed(h.LeaseUntil, clock.Stamp) {
		h.co.dropTicket(ctx, h.Ticket, h.Node)
		return Beat{}, &FencedError{h.Worker, why + ", and by ZooKeeper's clock the lease has expired", true}
	}
	beat, err := h.putBack(ctx, cl, v, r)
	if err == nil {
		h.co.replaceAllLost(ctx, cl)
	}
	return beat, err
}

// putBack creates our record, or writes it over the record found.
func (h *Hold) putBack(ctx context.Context, cl Cluster, v view, r Report) (Beat, error) {
	var old Slot
	if v.slot != nil && !v.slot.Lost { // a Lost record's bound is no lease of ours
		old = *v.slot
	}
	h.Heard = Chain{} // of a record that is lost
	slot, err := h.nextGrant(cl, old, r.Lease, h.Confirmed)
	if err != nil {
		return Beat{}, err
	}
	slot.State, slot.Confirmed = r.State, h.Confirmed
	version, sent := int32(0), h.co.Boot()
	if v.slot == nil {
		err = h.co.createSlot(ctx, h.Worker, slot)
	} else {
		version = v.stat.Version + 1
		_, err = h.co.Store.Set(ctx, slotPath(h.Worker), slot.marshal(), v.stat.Version)
	}
	if err != nil {
		return Beat{}, err
	}
	h.begin(cl, sent, version, slot.LeaseUntil)
	written, err := h.co.readBack(ctx, h.Worker)
	if err != nil {
		return Beat{}, err
	}
	beat := Beat{
		LeaseUntil: slot.LeaseUntil, Confirmed: slot.Confirmed, Floor: h.Floor,
		FrozenUntil: cl.FrozenUntil, FrozenBy: cl.FrozenBy, Clock: h.co.setReading(slot.ReportedClock, written),
	}
	if slot.LeaseUntil > old.LeaseUntil {
		beat.ends = endsAt(slot.LeaseUntil, slot.ReportedClock, sent)
	}
	return beat, nil
}

// createSlot creates the record of a slot, and its parent if that is lost as well.
func (c *Coordinator) createSlot(ctx context.Context, worker int, s Slot) error {
	_, err := c.Store.Create(ctx, slotPath(worker), s.marshal(), store.Persistent)
	if errors.Is(err, store.ErrNoNode) {
		if err = ensureRoot(ctx, c.Store); err == nil {
			_, err = c.Store.Create(ctx, slotPath(worker), s.marshal(), store.Persistent)
		}
	}
	return err
}
