package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Report has what a heartbeat writes to ZooKeeper.
type Report struct {
	// Lease is the distance from now to the new lease bound. 0: the clock is not trusted, and the bound stays.
	Lease time.Duration
	// Generation is the write count of the local record.
	Generation uint64
	// State is shown to people.
	State string
	// Agreed is the last comparison in which most voters (the leader and the peers) agreed with our clock; zero if
	// none.
	Agreed Reading
}

// Beat is the result of a heartbeat. It counts when the Hold has accepted it.
type Beat struct {
	// Restored: ZooKeeper had lost our record or the cluster's, and the node puts it back. It is set although that
	// fails: the next heartbeat may find the record that this one has written, and not notice the loss.
	Restored bool
	// LeaseUntil is the acknowledged lease bound. It counts if the record that has it is Confirmed.
	LeaseUntil int64
	Confirmed  bool
	// ends is Claim.Ends for that bound, 0 if the bound stays.
	ends int64
	// Floor is the first timestamp that may be issued from now on. If it is above that of the claim, the lease had run
	// out, and what was issued under it must have ended.
	Floor int64
	// Wait is the confirming time that begins now, 0 if none does. It begins after a restart from the local record, and
	// after the lease had run out.
	Wait time.Duration
	// FrozenUntil is the end of the freeze of registration, Unix ms; 0: not frozen. FrozenBy is the operator who froze
	// it. Empty: a node did, because ZooKeeper had lost data.
	FrozenUntil int64
	FrozenBy    string
	Clock       Reading
	// Shown: the slot's live lock belongs to the present session. False: the node does not know, see Show.
	Shown bool
}

// FencedError: this node has lost the slot and must issue no more IDs for it.
type FencedError struct {
	Worker int
	Reason string
	// Lost: ZooKeeper has lost data.
	Lost bool
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("this node lost worker %d: %s", e.Worker, e.Reason)
}

// Heartbeat reports to ZooKeeper and extends the lease, by a versioned write (C13). It reads the slot first, and does
// what the table of docs/safety.md says (C19): if the record is ours, Heartbeat writes it again. If another node has
// the slot, this node is fenced. If ZooKeeper lost the record, Heartbeat puts it back while the lease bound is ahead.
//
// After a *FencedError the Hold is over: another node has the slot, the lease had ended when ZooKeeper lost the record,
// the process began from an old copy of its state, or a freeze keeps the slot from a holder that never confirmed. After
// an error of the store the Hold goes on.
func (h *Hold) Heartbeat(ctx context.Context, r Report) (Beat, error) {
	h.Generation = r.Generation
	if err := h.co.Settle(ctx); err != nil {
		return Beat{}, err
	}
	restored := false
	for synced := false; ; {
		v, err := h.readBeat(ctx)
		if err != nil {
			return Beat{Restored: restored}, err
		}
		h.recognise(v.slot)
		finding, why := h.judge(v, h.co.mine)
		if finding != FoundOurs && !synced {
			// The server may lag behind. Decide only after a sync.
			synced = true
			if err := h.co.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
				return Beat{Restored: restored}, err
			}
			continue
		}
		var beat Beat
		switch finding {
		case FoundOurs:
			beat, err = h.report(ctx, v, r)
			beat.Shown = h.co.locked == h.co.lockOf(h.Worker)
		case FoundLost:
			restored = true
			beat, err = h.restore(ctx, v, r, why)
		case FoundFenced:
			err = h.fence(ctx, v, why)
		}
		beat.Restored = restored
		if !outpaced(err) {
			return beat, err
		} // else read the record again
	}
}

// outpaced reports whether a record must be read and written again: it has changed since it was read, or our own write
// of it must not stay (errTakeBack).
func outpaced(err error) bool {
	return errors.Is(err, store.ErrBadVersion) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNoNode) ||
		errors.Is(err, errTakeBack)
}

// fence gives the slot up after another node's record was found. That may also show that ZooKeeper has lost ours.
// Holders that are cut off need a freeze then (C21).
func (h *Hold) fence(ctx context.Context, v view, why string) error {
	lost := h.showsLoss(v, h.co.mine)
	if lost {
		h.co.Note(h.lossOf(v.cl, why))
		_ = h.co.Settle(ctx) // if it fails: Register tries again
	}
	h.co.dropTicket(ctx, h.Ticket, h.Node)
	return h.giveUp(ctx, why, lost)
}

// giveUp deletes the live lock, and returns a *FencedError. lost: ZooKeeper has lost data.
func (h *Hold) giveUp(ctx context.Context, why string, lost bool) error {
	h.co.strayLock = h.Worker
	_ = h.co.unlock(ctx) // if it fails: Register tries again
	return &FencedError{h.Worker, why, lost}
}

// Accept makes a heartbeat count. A slot that was not confirmed before is saved before its lease bound is used.
//
// end is the end of what was issued under a lease that had run out, Unix ms, 0 if none had. The caller must have ended
// that before: the claim's new lease bound is not for it.
func (h *Hold) Accept(b Beat, end int64) error {
	claim := h.Claim // its bound rises here only, after the acknowledgement (C4)
	if claim.Floor = max(b.Floor, end); b.Confirmed {
		claim.EverConfirmed, claim.LeaseUntil, claim.Ends = true, b.LeaseUntil, cmp.Or(b.ends, claim.Ends)
	}
	switch {
	case !b.Confirmed:
		h.stage = confirming
	case h.stage != confirmed:
		_, err := h.co.Ledger.Save(claim)
		if err != nil {
			return err
		}
		h.stage = confirmed
	}
	h.Claim = claim
	return nil
}

// errTakeBack: the record was written confirmed, and must be written again, unconfirmed.
var errTakeBack = errors.New("the lease had expired by ZooKeeper's clock")

// report writes our slot again: it plans, writes, and takes over the acknowledgement.
func (h *Hold) report(ctx context.Context, v view, r Report) (Beat, error) {
	h.co.saw(*v.cl)
	e := h.co.gather().judgedBy(r)
	d := h.plan(v, e, r)
	switch {
	case d.fenced != "":
		return Beat{}, h.giveUp(ctx, d.fenced, false)
	case d.renew:
		// ZooKeeper does not know yet that the process began without it. The lease bound stays: the next
		// heartbeat confirms.
		confirm, err := h.writeNextTerm(ctx, v, r.Lease)
		return Beat{Floor: h.Floor, Clock: h.co.reading, Wait: confirm}.frozenBy(v, e), err
	}
	//mutant:c4-unacknowledged-bound by sim -> h.beforeWrite(d, e); h.LeaseUntil = d.slot.LeaseUntil
	h.beforeWrite(d, e)
	// The record says what this node has compared in its session, so it must not be written in the next one.
	after, written, err := h.co.write(store.OnSession(ctx, e.session), d, v, h.Worker)
	if written {
		h.Heard = h.Heard.with(e.boot, h.co.Boot(), v.stat.Version+1, e.beat)
	}
	if err != nil {
		return Beat{}, err
	}
	beat, err := h.afterWrite(d, v, after, e)
	if err != nil {
		return Beat{}, err
	}
	h.traceBeat(d, v, after, e, beat)
	if beat.Wait > 0 {
		h.confirmAfter(beat.Wait, true)
	}
	beat.Clock = h.co.setReading(e.now, after)
	h.co.rtt = max(0, beat.Clock.Acked-e.now)
	return beat.frozenBy(v, e), nil
}

// frozenBy returns the result with the freeze of registration that the cluster's record shows.
func (b Beat) frozenBy(v view, e evidence) Beat {
	if e.now < v.cl.FrozenUntil {
		b.FrozenUntil, b.FrozenBy = v.cl.FrozenUntil, v.cl.FrozenBy
	}
	return b
}

// write writes the record that d has over the one found (C13). If that confirms the slot, the same transaction
// checks that the cluster's record has not changed, so that no freeze came in between (C21). written means that the
// write was acknowledged, although the record's stat may be unknown.
func (c *Coordinator) write(ctx context.Context, d decision, v view, worker int) (
	after store.Stat, written bool, _ error,
) {
	//mutant:c13-heartbeat-over-any-version by sim -> version := store.AnyVersion
	version := v.stat.Version
	set := store.SetOp{Path: SlotPath(worker), Data: d.slot.marshal(), Version: version}
	if d.cluster == *v.cl && !d.confirms {
		after, err := c.Store.Set(ctx, set.Path, set.Data, set.Version)
		return after, err == nil, err
	}
	if err := c.Store.Multi(ctx, clusterOp(v, d.cluster), set); err != nil {
		return store.Stat{}, false, err
	}
	c.saw(d.cluster)
	after, err := c.readBack(ctx, worker)
	return after, true, err
}

// clusterOp returns the operation that writes the cluster's record, if cl is not what v has, and checks otherwise that
// it has not changed.
func clusterOp(v view, cl Cluster) store.Op {
	if cl != *v.cl {
		return store.SetOp{Path: clusterPath, Data: cl.marshal(), Version: v.clStat.Version}
	}
	return store.CheckOp{Path: clusterPath, Version: v.clStat.Version}
}

// Leased reports whether the claim's confirmed lease still runs by the wall clock, now in Unix ms, and by the boot
// clock in ns. While it runs no other node can take the slot.
func (c Claim) Leased(now, boot int64) bool {
	return c.EverConfirmed && now < c.LeaseUntil && !c.over(boot)
}

// over reports whether the lease has ended by the boot clock.
func (c Claim) over(boot int64) bool { return c.Ends != 0 && boot >= c.Ends }

// endsAt returns when a lease up to bound, Unix ms, ends by the boot clock, ns. The wall clock reads now, and the boot
// clock boot.
func endsAt(bound, now, boot int64) int64 { return boot + (bound-now)*int64(time.Millisecond) }

// readBack reads the stat of a slot that we have just written in a transaction, which returns no stat.
func (c *Coordinator) readBack(ctx context.Context, worker int) (store.Stat, error) {
	_, stat, err := c.Store.Get(ctx, SlotPath(worker))
	return stat, err
}
