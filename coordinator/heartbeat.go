package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// Report is what a heartbeat tells ZooKeeper, and what it is to do there.
type Report struct {
	// Lease is how far ahead to push the lease bound. 0 leaves it where it is:
	// the clock is not trusted.
	Lease time.Duration
	// Generation is that of the local record.
	Generation uint64
	// State is shown to people.
	State string
	// RestartedFrom is the generation of the local record that the node began
	// from alone, without ZooKeeper: its term has still to grow. 0 otherwise.
	RestartedFrom uint64
	// Settle: the settling time has passed.
	Settle bool
	// Agreed is the last reading of our clock that most of ZooKeeper's leader and
	// the peers agreed with; zero if none.
	Agreed Reading
}

// Beat is what a heartbeat came to.
type Beat struct {
	Claim Claim
	// H is the acknowledged lease bound. It counts when Settled.
	H       int64
	Settled bool
	// Wait is the settling time that begins now: a restart from the local
	// record was made known, or the lease had run out.
	Wait time.Duration
	// Lost: ZooKeeper had lost our record or the cluster's, and it was put
	// back.
	Lost bool
	// FrozenUntil is until when registration is frozen, 0 when it is not.
	FrozenUntil int64
	Clock       Reading
	// Shown: the slot's live lock is of the present session.
	Shown bool
}

// FencedError: the slot is somebody else's now. Nothing may be issued for it.
type FencedError struct {
	Worker int
	Reason string
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("coordinator: worker %d was lost: %s", e.Worker, e.Reason)
}

// Heartbeat reports to ZooKeeper and extends the lease, by versioned write.
// What is found decides: our record is written again; a higher term fences;
// a record that ZooKeeper lost is put back for as long as our bound is ahead.
//
// Errors are *FencedError, after which the claim is void (somebody has taken
// the slot, or a freeze keeps a holder from settling that never has), and those of the
// store, after which nothing is known to have changed: the claim stays, with
// the grant that may have been made pending in it.
func (c *Coordinator) Heartbeat(ctx context.Context, claim Claim, r Report) (Beat, error) {
	beat, err := c.heartbeat(ctx, claim, r)
	var fenced *FencedError
	if errors.As(err, &fenced) {
		c.fenced = claim.Worker
		_ = c.unlock(ctx) // again when the next slot is looked for
	}
	return beat, err
}

func (c *Coordinator) heartbeat(ctx context.Context, claim Claim, r Report) (Beat, error) {
	claim.Generation = r.Generation
	for synced := false; ; {
		v, err := c.look(ctx, claim.Worker)
		if err != nil {
			return Beat{Claim: claim}, err
		}
		finding, why := c.judge(v.cl, v.slot, v.stat, claim)
		if finding != FoundOurs && !synced {
			// The server that we asked may lag behind. Nothing is decided on that.
			synced = true
			if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
				return Beat{Claim: claim}, err
			}
			continue
		}
		var beat Beat
		switch {
		case finding == FoundFenced:
			if c.wentBack(claim, v.slot, v.stat) && claim.leased(c.Now()) {
				_, _ = c.freeze(ctx, claim) // for those who cannot come back in time
			}
			c.dropTicket(ctx, claim.Ticket, claim.Node)
			return Beat{}, &FencedError{claim.Worker, why}
		case finding == FoundLost && c.Now() >= claim.H:
			if c.mustFreeze(v.cl, claim) {
				if _, err := c.freeze(ctx, claim); err != nil { // for the others
					return Beat{Claim: claim}, err
				}
			}
			c.dropTicket(ctx, claim.Ticket, claim.Node)
			return Beat{}, &FencedError{claim.Worker, why + ", and the lease has run out"}
		case finding == FoundLost:
			beat, err = c.reassert(ctx, claim, v.slot, v.stat, r, why)
		default:
			c.remember(v.cl.Used)
			beat, err = c.report(ctx, claim.adopt(*v.slot), *v.cl, v.clStat, *v.slot, v.stat, r)
			beat.Shown = v.lock.Found && v.lock.Stat.Owner == c.Store.SessionID()
		}
		if errors.Is(err, zkstore.ErrBadVersion) || errors.Is(err, zkstore.ErrExists) || errors.Is(err, zkstore.ErrNoNode) || errors.Is(err, errHadRunOut) {
			claim.Ticket = beat.Claim.Ticket // it may have been drawn anew
			continue                         // changed meanwhile: what it is now decides
		}
		return beat, err
	}
}

// judge puts the findings on the cluster's record and ours together. Whoever
// took our slot over fences us, also where the cluster record was lost since:
// with a clock behind theirs we would put back a lease that has ended. But an
// older copy of our record that somebody took and has not settled on is ours.
func (c *Coordinator) judge(cl *Cluster, slot *Slot, stat zkstore.Stat, claim Claim) (Finding, string) {
	cluster, finding := JudgeCluster(cl, c.mine.UUID, claim.Incarnation), JudgeSlot(slot, claim)
	older := c.wentBack(claim, slot, stat)
	if older && finding == FoundFenced && !slot.Settled {
		finding = FoundLost
	}
	switch {
	case cluster == FoundFenced:
		return cluster, fmt.Sprintf("this ZooKeeper now holds cluster %s, not %s", cl.UUID, c.mine.UUID)
	case finding == FoundFenced:
		return finding, fmt.Sprintf("node %s (%s) holds it at term %d, ours was %d", slot.Node, slot.Name, slot.Term, claim.Term)
	case cluster == FoundLost:
		return cluster, "ZooKeeper has lost the cluster record"
	case finding == FoundLost && slot == nil:
		return finding, "ZooKeeper has lost its record"
	case finding == FoundLost:
		return finding, fmt.Sprintf("ZooKeeper has an older record of it: node %s (%s) at term %d, ours was %d", slot.Node, slot.Name, slot.Term, claim.Term)
	case older || slot.H < claim.H:
		return FoundLost, "ZooKeeper has an older copy of its record"
	}
	return finding, ""
}

// report writes our slot again.
func (c *Coordinator) report(ctx context.Context, claim Claim, cl Cluster, clStat zkstore.Stat, found Slot, stat zkstore.Stat, r Report) (Beat, error) {
	beat := Beat{Claim: claim}
	if now := c.Now(); now < cl.FrozenUntil {
		beat.FrozenUntil = cl.FrozenUntil
	}
	if r.RestartedFrom != 0 {
		// What this process wrote itself, unacknowledged, is no later copy.
		if found.Generation > r.RestartedFrom && !c.granted[found.Nonce] {
			return beat, &FencedError{claim.Worker, fmt.Sprintf("it was started from an old copy of its state: ZooKeeper has seen generation %d, that was %d", found.Generation, r.RestartedFrom)}
		}
		next, slot, clock, err := c.renew(ctx, claim, cl, found, stat, r.Lease)
		beat.Claim = next
		if err != nil {
			return beat, err
		}
		c.raiseIfRunOut(claim, next, found, clock)
		beat.H, beat.Clock, beat.Wait = slot.H, clock, c.settling(ctx, cl, claim.Worker)
		return beat, nil
	}
	now := c.Now()
	if !claim.Settled && cl.Frozen(claim.Worker, c.earliest(now)) {
		// Kept for an owner that may come back. Waiting for a lease to end, a
		// day perhaps, serves nobody: another slot may be free.
		return beat, &FencedError{claim.Worker, "ZooKeeper lost data and keeps the worker for the owner that it may have had"}
	}
	slot := c.record(claim.in(cl), claim.Term, claim.Nonce, found, now, r.Lease)
	lapsed := now >= found.H || found.Settled && c.waits(claim, now)
	if lapsed {
		c.settleAnew(claim, now+settlingTime(cl).Milliseconds()) // before the write: it may count without our knowing
	}
	slot.State, slot.Settled = r.State, found.Settled && !lapsed
	settle := r.Settle && !slot.Settled && c.maySettle(cl, claim, now) && !c.tooEarly(claim, now, c.agreed(r))
	if settle {
		slot.Settled = true
		written, err := c.settle(ctx, cl, clStat, claim.Worker, slot, stat)
		if err != nil {
			return beat, err
		}
		stat = written
	} else {
		written, err := c.Store.Set(ctx, slotPath(claim.Worker), slot.marshal(), stat.Version)
		if err != nil {
			return beat, err
		}
		stat = written
		c.acknowledged(slot.Nonce, stat.Version)
	}
	if ran, lost := c.since(claim, found, stat); cl.SettleMs > 0 && lost && c.hadRunOut(ran, stat.Mtime, r) {
		c.raiseFloor(claim, now, stat.Mtime)
		if !lapsed {
			c.settleAnew(claim, now+settlingTime(cl).Milliseconds())
		}
		if slot.Settled {
			return beat, errHadRunOut // what is written is to be taken back
		}
		lapsed = true
	}
	if lapsed {
		beat.Wait = c.settling(ctx, cl, claim.Worker)
		c.settleAnew(claim, now+beat.Wait.Milliseconds())
	}
	beat.Claim = beat.Claim.in(cl)
	beat.H, beat.Settled = slot.H, slot.Settled
	if beat.Settled && !claim.leased(now) {
		// Whoever had the slot and was forgotten has issued until now at most, and
		// what it could borrow.
		beat.Claim.Lo = max(claim.Lo, now+cl.BorrowMs)
	}
	if beat.Settled && claim.Nonce == c.forgotten.nonce {
		beat.Claim.Lo = max(beat.Claim.Lo, c.floor(now, c.agreed(r)))
	}
	beat.Clock = Reading{Sent: now, Acked: c.Now(), Stamp: stat.Mtime}
	c.latest, c.reading = stat, beat.Clock
	c.lookedAt(slot, stat.Epoch())
	c.rtt = max(0, beat.Clock.Acked-now)
	return beat, nil
}

// leased tells whether a settled lease is still running. While it does nobody
// can have taken the slot: it takes a bound that has passed.
func (c Claim) leased(now int64) bool { return c.Settled && now < c.H }

// maySettle: while registration is frozen only holders whose settled lease is
// still running may settle again. One whose lease had run out has to wait as
// if it had just come: somebody else may have come and gone, or may be about
// to come back to a ZooKeeper that has forgotten them.
func (c *Coordinator) maySettle(cl Cluster, claim Claim, now int64) bool {
	if c.waits(claim, now) {
		return false
	}
	return !cl.Frozen(claim.Worker, c.earliest(now)) || claim.leased(now) && !c.doubted(claim)
}

func (c *Coordinator) waits(claim Claim, now int64) bool {
	return claim.Nonce == c.anew.nonce && now < c.anew.at
}

func (c *Coordinator) settleAnew(claim Claim, at int64) { c.anew.nonce, c.anew.at = claim.Nonce, at }

// settle writes a slot as settled, in one step with the proof that the cluster
// record has not changed: no freeze has come in between. The first to settle
// in a cluster settles the cluster's record too.
func (c *Coordinator) settle(ctx context.Context, cl Cluster, clStat zkstore.Stat, worker int, slot Slot, stat zkstore.Stat) (zkstore.Stat, error) {
	var first zkstore.Op = zkstore.CheckOp{Path: clusterPath, Version: clStat.Version}
	if !cl.Settled {
		cl.Settled = true
		first = zkstore.SetOp{Path: clusterPath, Data: cl.marshal(), Version: clStat.Version}
	}
	if err := c.Store.Multi(ctx, first, zkstore.SetOp{Path: slotPath(worker), Data: slot.marshal(), Version: stat.Version}); err != nil {
		return zkstore.Stat{}, err
	}
	c.acknowledged(slot.Nonce, stat.Version+1)
	return c.readBack(ctx, worker)
}

// readBack reads the stat of a slot just written, where the write gave none.
func (c *Coordinator) readBack(ctx context.Context, worker int) (zkstore.Stat, error) {
	_, stat, err := c.Store.Get(ctx, slotPath(worker))
	return stat, err
}
