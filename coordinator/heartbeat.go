package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// Heartbeat reports to ZooKeeper and extends the lease, by a versioned write (C13). It reads the slot first, and does
// what the table of docs/safety.md says (C19): if the record is ours, Heartbeat writes it again. If another node has
// the slot, this node is fenced. If ZooKeeper lost the record, Heartbeat puts it back while the lease bound is ahead.
//
// After a *FencedError the Hold is over: another node has the slot, the lease had ended when ZooKeeper lost the record,
// the process began from an old copy of its state, or a freeze keeps the slot from a holder that never confirmed. After
// an error of the store the Hold goes on.
func (h *Hold) Heartbeat(ctx context.Context, r Report) (Beat, error) {
	h.Generation = r.Generation
	if err := h.co.WriteNoted(ctx); err != nil {
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

// readBeat reads the view of our worker in one round trip, and with it what Peers compares after the heartbeat, if the
// live workers were listed before.
func (h *Hold) readBeat(ctx context.Context) (view, error) {
	c := h.co
	paths, own := []string{clusterPath, SlotPath(h.Worker)}, 2
	var peers []int
	if c.roster.listed {
		peers = somePeers(c.known(h.Worker))
		paths = append(paths, samplePaths(peers)...)
	}
	records, err := c.Store.GetAll(ctx, paths...)
	if err != nil {
		return view{}, err
	}
	if c.roster.listed {
		c.roster.sampled = c.sampled(peers, records[own:])
	}
	return parseView(records[:own])
}

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
	//mutant:c4-unacknowledged-bound by sim -> h.confirmAt, h.LeaseUntil = d.confirmAt, d.slot.LeaseUntil
	h.confirmAt = d.confirmAt // counts once the write is sent: it may arrive although its answer is lost
	// The record says what this node has compared in its session, so it must not be written in the next one.
	after, written, err := h.co.write(store.OnSession(ctx, e.session), d, v, h.Worker)
	if written && err != nil {
		h.Heard = Chain{Version: v.stat.Version + 1} // its stamp is not known
	}
	if err != nil {
		return Beat{}, err
	}
	stamped := h.co.acknowledged(e.at, after.Mtime)
	e.at = stamped.Sent
	h.Heard, h.Last = h.Heard.with(stamped, v.stat.Version+1, e.beat), stamped
	beat, err := h.afterWrite(d, v, after, e)
	if err != nil {
		return Beat{}, err
	}
	h.traceBeat(d, v, after, e, beat)
	if beat.Wait > 0 {
		h.confirmAfter(beat.Wait)
	}
	beat.Clock = h.co.setReading(e.now, after)
	h.co.rtt = max(0, beat.Clock.Acked-e.now)
	return beat.frozenBy(v, e), nil
}

// decision says what a heartbeat does with a record that is ours.
type decision struct {
	// fenced is why the node must give the slot up. If it is set, nothing else counts.
	fenced string
	// renew: the process started without ZooKeeper. Write the next term.
	renew bool
	// slot is the record to write. confirms: the write makes it confirmed, so it must fail if the cluster's record has
	// changed. cluster is that record, with the write's changes.
	slot     Slot
	confirms bool
	cluster  Cluster
	// lapsed: the lease had run out, so the confirming time begins anew. confirmAt is its end from this write on, ns of
	// AtLeast.
	lapsed    bool
	confirmAt int64
}

// plan decides what to write. v has a cluster and a slot, and both are ours.
func (hold holdState) plan(v view, e evidence, r Report) decision {
	found := *v.slot
	switch {
	// A record that this process wrote without an acknowledgement proves no later copy.
	case hold.stage == alone && found.Generation > hold.startedFrom && !slices.Contains(hold.granted, found.Nonce):
		return decision{fenced: fmt.Sprintf("this node was started from an old copy of its state: ZooKeeper has seen "+
			"generation %d, the copy has generation %d", found.Generation, hold.startedFrom)}
	case hold.stage == alone:
		return decision{renew: true}
	case !hold.EverConfirmed && v.cl.Frozen(e.earliest()):
		// The slot is kept for a holder that may come back (C21). Give it up rather than wait for a lease of perhaps a
		// day: another slot may be free.
		return decision{fenced: "registration is frozen, which keeps the worker for an earlier holder"}
	}
	d := decision{cluster: v.cl.withHorizon(e.agreedNow(), r.Lease), confirmAt: hold.confirmAt}
	// afterWrite or writeNextTerm found that our last write must not stay confirmed: write it again, unconfirmed.
	takeBack := found.Confirmed && e.at.Least < hold.confirmAt
	// The boot clock counts for a confirmed record only: an unconfirmed one would lapse at each heartbeat, and never
	// confirm.
	//mutant:c26-lapsed-lease-goes-on by TestPlan -> d.lapsed = takeBack
	d.lapsed = e.now >= found.LeaseUntil || takeBack || found.Confirmed && hold.over(e.at.Boot)
	if d.lapsed {
		d.confirmAt = e.confirmAt(*v.cl)
	}
	// A restart that goes on in its chain finds its record confirmed: it needs no write that confirms. A lapsed lease
	// is confirmed by this same write only if the confirming time is 0: its wait begins now.
	d.confirms = hold.stage != confirmed && (d.lapsed || !found.Confirmed) && hold.mayConfirm(d.confirmAt, *v.cl, e) &&
		!hold.floorTooFarAhead(e)
	d.cluster.InUse = v.cl.InUse || d.confirms
	confirmed := found.Confirmed && !d.lapsed || d.confirms
	d.slot = hold.record(e, *v.cl, found, r.Lease, e.usableHorizon(d.cluster, confirmed))
	d.slot.State, d.slot.Confirmed = r.State, confirmed
	return d
}

// record returns the slot's record as this node writes it over the old one. Its lease bound is never below the old
// one's or ours (C3), and a lease does not raise it above the horizon (C23). A lease of 0 means that the clock is not
// trusted: it is reported, and moves no bound.
func (c Claim) record(e evidence, cl Cluster, old Slot, lease time.Duration, horizon int64) Slot {
	s := e.self
	s.Node, s.Ticket = c.Node, c.Ticket
	s.Term, s.Nonce = c.Term, c.Nonce
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

// errTakeBack: the record was written confirmed, and must be written again, unconfirmed.
var errTakeBack = errors.New("the lease had expired by ZooKeeper's clock")

// afterWrite returns the result of the heartbeat after the write was acknowledged, and takes over what that shows.
// after is the record's stat since then, with the leader's time.
//
// The error is errTakeBack if the lease had run out by the leader's clock (C26), and the record was written confirmed.
// The loop in Heartbeat writes it again, unconfirmed.
func (hold *holdState) afterWrite(d decision, v view, after store.Stat, e evidence) (Beat, error) {
	hold.listens(after, e, v.cl.ConfirmTime())
	lapsed := d.lapsed
	if v.cl.ConfirmMs > 0 && e.hasPassed(hold.previousBound(*v.slot), after.Mtime) {
		hold.doubt = doubt{raised: true, now: e.now, stamp: after.Mtime}
		if d.slot.Confirmed {
			hold.confirmAt = e.confirmAt(*v.cl)
			// Until it is written again, the node serves on below the bound that it had: no other node can have
			// confirmed before that (C3). hold.bound stays, so that the next look finds the same.
			return Beat{}, errTakeBack
		}
		lapsed = true
	}
	// The leader's stamp shows that less has passed than our clocks have counted, so that we confirm too early (C31).
	//mutant:c31-beat-not-judged-again by TestStampOfABeatThatConfirmsTooEarly -> early := false
	early := d.confirms && e.at.Least < d.confirmAt
	if early && v.cl.ConfirmMs > 0 {
		hold.confirmAt = e.confirmAt(*v.cl)
		return Beat{}, errTakeBack
	}
	hold.Incarnation = v.cl.Incarnation
	hold.bound = d.slot.LeaseUntil
	beat := Beat{LeaseUntil: d.slot.LeaseUntil, Confirmed: d.slot.Confirmed, Floor: hold.Floor}
	if lapsed {
		beat.Wait = v.cl.ConfirmTime()
	}
	if !beat.Confirmed {
		return beat, nil
	}
	if !hold.Leased(e.now, e.at.Boot) {
		// A holder that ZooKeeper lost has issued at most up to now + BorrowMs (C26, C27).
		//mutant:c27-lost-holder-has-not-borrowed -> beat.Floor = max(hold.Floor, e.now)
		beat.Floor = max(hold.Floor, e.now+v.cl.BorrowMs)
	}
	if hold.doubt.raised {
		hold.doubt.floor = cmp.Or(hold.doubt.floor, hold.doubt.newFloor(e))
		beat.Floor = max(beat.Floor, hold.doubt.floor)
	}
	if d.confirms || d.slot.LeaseUntil > v.slot.LeaseUntil {
		beat.ends = endsAt(d.slot.LeaseUntil, e.now, e.at.Boot)
	}
	return beat, nil
}

// frozenBy returns the result with the freeze of registration that the cluster's record shows.
func (b Beat) frozenBy(v view, e evidence) Beat {
	if e.now < v.cl.FrozenUntil {
		b.FrozenUntil, b.FrozenBy = v.cl.FrozenUntil, v.cl.FrozenBy
	}
	return b
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
