package coordinator

import (
	"context"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// restore puts our record back after ZooKeeper has lost it, if the lease runs by all clocks (C24, C26). First it
// freezes registration, because new nodes may be about to confirm, and holders that are cut off may have leases that
// run (C21). why says how the loss was noticed.
func (h *Hold) restore(ctx context.Context, v view, r Report, why string) (Beat, error) {
	runs := h.co.Now() < h.LeaseUntil && !h.over(h.co.Elapsed.Now().Boot)
	l := h.lossOf(v.cl, why)
	cl, err := h.co.raise(ctx, l)
	switch {
	case err != nil:
		return Beat{}, err
	case !h.EverConfirmed:
		return Beat{}, h.yields(ctx, why+", and this node had not confirmed the worker")
	case !runs:
		return Beat{}, h.yields(ctx, why+", and the lease has expired")
	}
	// Another holder may have frozen long ago. By the leader's clock now, check whether that freeze is long enough.
	e := h.co.gather().judgedBy(r) // before the ticket: hasPassed asks how far our clock was ahead
	clock, err := h.co.touchTicket(ctx, &h.Claim)
	if err == nil && cl.FrozenUntil < cl.lastLease(clock.Stamp) {
		cl, err = h.co.raise(ctx, l)
	}
	if err != nil {
		return Beat{}, err
	}
	// By our own clock the lease still runs, but that clock may have gone back.
	if h.doubted() || e.hasPassed(h.LeaseUntil, clock.Stamp) {
		return Beat{}, h.yields(ctx, why+", and by ZooKeeper's clock the lease has expired")
	}
	beat, err := h.putBack(ctx, cl, v, r)
	if err != nil {
		return Beat{}, err
	}
	if err := h.co.replaceLost(ctx, cl); err != nil {
		h.co.Logger.Warn("could not replace the lost records of workers, new nodes may wait longer", "error", err)
	}
	return beat, nil
}

// putBack creates our record, or writes it over the record found, with a higher term than that has.
func (h *Hold) putBack(ctx context.Context, cl Cluster, v view, r Report) (Beat, error) {
	var old Slot
	if v.slot != nil && !v.slot.Lost { // a Lost record's bound is no lease of ours
		old = *v.slot
	}
	h.Heard = Chain{} // of a record that is lost
	if err := h.pend(old); err != nil {
		return Beat{}, err
	}
	e := h.co.gather()
	slot := h.pendingRecord(e, cl, old, r.Lease, true)
	slot.State = r.State
	version, err := int32(0), error(nil)
	if v.slot == nil {
		err = create(ctx, h.co.Store, SlotPath(h.Worker), slot.marshal(), store.Persistent)
	} else {
		version = v.stat.Version + 1
		_, err = h.co.Store.Set(ctx, SlotPath(h.Worker), slot.marshal(), v.stat.Version)
	}
	if err != nil {
		return Beat{}, err
	}
	h.begin("restored", cl, e, timeguard.Stamped{Sent: e.at, Acked: h.co.Elapsed.Now()}, old, slot, version)
	h.confirmAt = 0 // of the record that is lost
	written, err := h.co.readBack(ctx, h.Worker)
	if err != nil {
		return Beat{}, err
	}
	e.at = h.co.acknowledged(e.at, written.Mtime).Sent
	beat := Beat{
		LeaseUntil: slot.LeaseUntil, Confirmed: true, Floor: h.Floor,
		FrozenUntil: cl.FrozenUntil, FrozenBy: cl.FrozenBy, Clock: h.co.setReading(e.now, written),
	}
	if slot.LeaseUntil > old.LeaseUntil {
		beat.ends = endsAt(slot.LeaseUntil, e.now, e.at.Boot)
	}
	return beat, nil
}
