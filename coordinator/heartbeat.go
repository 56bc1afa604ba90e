package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Report has what a heartbeat writes to ZooKeeper.
type Report struct {
	// Lease is the distance from now to the new lease bound. 0: the clock is not trusted, and the bound stays.
	Lease time.Duration
	// Generation is the write count of the local record.
	Generation uint64
	// Phase is shown to people.
	Phase string
	// Agreed is the last comparison in which most voters (the leader and the peers) agreed with our clock; zero if
	// none.
	Agreed Reading
}

// Beat is the result of a heartbeat. A Beat counts once Accept was called with it.
type Beat struct {
	// Restored: ZooKeeper had lost our record or the cluster's, and the node restores it. Restored is set even if that
	// fails: the next heartbeat may find the record that this one has written, and not notice the loss.
	Restored bool
	// LeaseUntil is the acknowledged lease bound. The node may use it if the record that has it is Confirmed.
	LeaseUntil int64
	Confirmed  bool
	// bootEnd is Claim.BootEnd for that bound, 0 if the bound stays.
	bootEnd int64
	// Floor is the first timestamp that may be issued from now on. If it is above that of the claim, the slot was
	// confirmed for the first time, or the lease had run out. The tenure with the lower floor must then have ended.
	Floor int64
	// wait is the confirming time that begins now, 0 if none does. One begins after a restart from the local record,
	// and after the lease had run out.
	wait time.Duration
	// FrozenUntil is the end of the freeze of registration, Unix ms; 0: not frozen. FrozenBy is the operator who froze
	// it. Empty: a node did, because ZooKeeper had lost data.
	FrozenUntil int64
	FrozenBy    string
	Clock       Reading
	// sample has the records of peers that the heartbeat has read together with its own. nil: none.
	sample *sample
}

// Heartbeat reports to ZooKeeper and extends the lease, by a versioned write (C13). It reads the slot first, and does
// what the table of docs/design.md says (C19): if the record is ours, Heartbeat writes it again. If another node has
// the slot, this node is fenced. If ZooKeeper lost the record, Heartbeat restores it while the lease bound is ahead.
//
// After a *FencedError the tenure is over: another node has the slot, or another cluster has taken the place of ours;
// the lease had ended, or the slot was never confirmed, when ZooKeeper lost the record; the process began from an old
// copy of its state, or has a clone; or a freeze keeps the slot from a holder that never confirmed. After an error of
// the store the tenure goes on.
func (c *Coordinator) Heartbeat(ctx context.Context, r Report) (beat Beat, _ error) {
	h := c.holder
	h.Generation = r.Generation
	if err := c.AnnounceDue(ctx); err != nil {
		return Beat{}, err
	}
	restored := false
	for synced := false; ; {
		v, sampled, err := c.readBeat(ctx)
		if err != nil {
			return Beat{Restored: restored}, err
		}
		h.recognise(v.slot)
		finding, why := h.finding(v, c.mine)
		switch {
		case finding != FoundOurs && !synced:
			// The server may lag behind. Decide only after a sync.
			synced = true
			if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
				return Beat{Restored: restored}, err
			}
			continue
		case finding == FoundOurs:
			beat, err = c.writeBeat(ctx, v, r)
		case finding == FoundLost:
			restored = true
			c.seenLock = lock{} // ZooKeeper may have lost the live lock, too
			beat, err = c.restore(ctx, v, r, why)
		case finding == FoundFenced:
			beat, err = Beat{}, c.fence(ctx, v, why)
		case finding == FoundCloned: // the ticket and the live lock are the other process's, too
			beat, err = Beat{}, &FencedError{Worker: h.Worker, Reason: why, Cloned: true}
		}
		beat.Restored, beat.sample = restored, sampled
		if !mustReread(err) {
			return beat, err
		} // else read the record again
	}
}

// readBeat reads the cluster's record and our slot in one round trip, and with them what ReadPeerClocks compares after
// the heartbeat, if the live workers were listed before.
func (c *Coordinator) readBeat(ctx context.Context) (v recordPair, sampled *sample, _ error) {
	h := c.holder
	paths, pair := []string{clusterPath, SlotPath(h.Worker)}, 2
	var peers []int
	if c.live.read {
		peers = randomPeers(c.livePeers(h.Worker))
		paths = append(paths, samplePaths(peers)...)
	}
	records, err := c.Store.GetAll(ctx, paths...)
	if err != nil {
		return recordPair{}, nil, err
	}
	if c.live.read {
		sampled = c.noteSample(peers, records[pair:])
	}
	v, err = parsePair(records[:pair])
	return v, sampled, err
}

// writeBeat writes our slot again: the holderState plans, and takes over what the acknowledgement shows.
func (c *Coordinator) writeBeat(ctx context.Context, v recordPair, r Report) (Beat, error) {
	h := c.holder
	c.noteCluster(*v.cl)
	e := c.gather(r.Agreed)
	d := h.plan(v, e, r)
	switch d.action {
	case actGiveUp:
		return Beat{}, c.giveUp(ctx, d.why, false)
	case actNextTerm: // the claim's lease bound stays, and the next heartbeat confirms
		confirm, err := c.writeNextTerm(ctx, v, r.Lease)
		return Beat{Floor: h.Floor, Clock: c.reading, wait: confirm}.withFreeze(v, e), err
	}
	// The confirming time ends at d.confirmAt from here on: the write may arrive even if it is not acknowledged.
	//mutant:c4-unacknowledged-bound by sim -> h.confirmAt, h.LeaseUntil = d.confirmAt, d.slot.LeaseUntil
	h.confirmAt = d.confirmAt
	// The record says what this node has compared in its session, so it must not be written in the next one.
	after, written, err := c.write(store.OnSession(ctx, e.session), d, v, h.Worker)
	switch {
	case err != nil && written:
		h.noteUnstamped(v.slotStat.Version + 1)
	case err != nil && !store.Outpaced(err):
		h.noteUnacked(v.slotStat.Version + 1)
	}
	if err != nil {
		return Beat{}, err
	}
	w := c.correctClocks(e.at, after.Mtime)
	e.at = w.Sent
	beat, err := h.acked(d, v, w, after, e)
	if err != nil {
		return Beat{}, err
	}
	c.traceBeat(d, v, after, e, beat)
	beat.Clock = c.setReading(e.now, after)
	c.rtt = max(0, beat.Clock.Acked-e.now)
	return beat.withFreeze(v, e), nil
}

// write writes the record that d has over the one found (C13). If that confirms the slot, the same transaction
// checks that the cluster's record has not changed, so that no freeze came in between (C21). written means that the
// write was acknowledged, although the record's stat may be unknown.
//
// Scenario: A reads that registration is not frozen. B notices a loss, and freezes it for the lost holder of A's slot.
// A's write, which is on its way, would confirm the slot all the same.
func (c *Coordinator) write(ctx context.Context, d decision, v recordPair, worker int) (
	after store.Stat, written bool, _ error,
) {
	//mutant:c13-heartbeat-over-any-version by sim -> version := store.AnyVersion
	version := v.slotStat.Version
	set := store.SetOp{Path: SlotPath(worker), Data: d.slot.marshal(), Version: version}
	if d.cluster == *v.cl && !d.confirms {
		after, err := c.Store.Set(ctx, set.Path, set.Data, set.Version)
		return after, err == nil, err
	}
	if err := c.Store.Multi(ctx, clusterOp(v, d.cluster), set); err != nil {
		return store.Stat{}, false, err
	}
	c.noteCluster(d.cluster)
	_, after, err := c.Store.Get(ctx, set.Path) // a transaction returns no stat
	return after, true, err
}

// traceBeat traces an acknowledged heartbeat: d was written over v.
func (c *Coordinator) traceBeat(d decision, v recordPair, after store.Stat, e evidence, b Beat) {
	h := c.holder
	exact := d.cluster == *v.cl && !d.confirms // else the version was read after the write
	c.Trace.Step("beat", "node", h.Node, "worker", h.Worker, "term", h.Term, "nonce", h.Nonce,
		"inc", v.cl.Incarnation, "floor", b.Floor, "lease", d.slot.LeaseUntil, "confirmed", b.Confirmed,
		"confirms", d.confirms, "wait_ms", b.wait.Milliseconds(),
		"found_nonce", v.slot.Nonce, "found_lease", v.slot.LeaseUntil,
		"read", v.slotStat.Version, "version", after.Version, "exact", exact, "frozen", v.cl.FrozenUntil,
		"now", e.now, "leader", e.leaderNow(), "stamp", after.Mtime, "sent", e.at.Boot)
}

// withFreeze returns the result with the freeze of registration that the cluster's record shows.
func (b Beat) withFreeze(v recordPair, e evidence) Beat {
	if e.now < v.cl.FrozenUntil {
		b.FrozenUntil, b.FrozenBy = v.cl.FrozenUntil, v.cl.FrozenBy
	}
	return b
}

// Accept makes a heartbeat count. A slot that was not confirmed before is saved before its lease bound is used.
//
// end is the end of the tenure whose floor was below Beat.Floor, Unix ms, 0 if there is none. The caller must have
// ended that tenure before: the claim's new lease bound is not for it.
func (c *Coordinator) Accept(b Beat, end int64) error {
	accepted := *c.holder
	accepted.becomeAccepted(b, end)
	if accepted.stage == Confirmed && c.holder.stage != Confirmed {
		if _, err := c.Ledger.Save(accepted.Claim); err != nil {
			return err
		}
	}
	*c.holder = accepted
	return nil
}
