package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
)

// Report has what a heartbeat writes to ZooKeeper.
type Report struct {
	// Lease is the distance from now to the new lease bound. 0: the clock is not trusted,
	// and the bound stays.
	Lease time.Duration
	// Generation is the write count of the local record.
	Generation uint64
	// State is shown to people.
	State string
	// RestartedFrom is the generation of the local record that the node started from
	// without ZooKeeper. Its term in ZooKeeper must grow first. 0: no such start.
	RestartedFrom uint64
	// Confirm: the confirming time has passed.
	Confirm bool
	// Agreed is the last comparison in which most voters (the leader and the peers) agreed
	// with our clock; zero if none.
	Agreed Reading
}

// HeartbeatResult is the result of a heartbeat.
type HeartbeatResult struct {
	Claim Claim
	// LeaseUntil is the acknowledged lease bound. It counts when Confirmed.
	LeaseUntil int64
	Confirmed  bool
	// Wait is the confirming time that begins now, 0 if none does. It begins after a restart
	// from the local record, and after the lease had run out.
	Wait time.Duration
	// Lost: ZooKeeper had lost our record or the cluster's, and the node puts it back. It is set although that
	// fails: the next heartbeat may find the record that this one has written, and not notice the loss.
	Lost bool
	// FrozenUntil is the end of the freeze of registration, Unix ms; 0: not frozen. FrozenBy
	// is the operator who froze it. Empty: a node did, because ZooKeeper had lost data.
	FrozenUntil int64
	FrozenBy    string
	Clock       Reading
	// Shown: the slot's live lock belongs to the present session. False: the node does not know, see CreateLiveLock.
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

// Heartbeat reports to ZooKeeper and extends the lease, by a versioned write. It reads the slot
// first. If the record is ours, Heartbeat writes it again. If JudgeSlot finds that another node
// has the slot, the node is fenced. If ZooKeeper lost the record, Heartbeat puts it back while
// the lease bound is ahead.
//
// After a *FencedError the claim is void: another node has the slot, or a freeze keeps it
// from a holder that never confirmed. After an error of the store the claim stays. A grant
// that may have been written is pending in it.
func (c *Coordinator) Heartbeat(ctx context.Context, claim Claim, r Report) (HeartbeatResult, error) {
	beat, err := c.heartbeat(ctx, claim, r)
	if beat.Claim.Nonce == c.holding.Nonce {
		beat.Claim.Heard = c.holding.Heard
	}
	var fenced *FencedError
	if errors.As(err, &fenced) {
		c.fenced = claim.Worker
		_ = c.unlock(ctx) // if it fails: Register tries again
	}
	return beat, err
}

func (c *Coordinator) heartbeat(ctx context.Context, claim Claim, r Report) (result HeartbeatResult, _ error) {
	claim.Generation = r.Generation
	if err := c.Settle(ctx); err != nil {
		return HeartbeatResult{Claim: claim}, err
	}
	lost := false
	defer func() { result.Lost = result.Lost || lost }()
	for synced := false; ; {
		v, err := c.readView(ctx, claim.Worker)
		if err != nil {
			return HeartbeatResult{Claim: claim}, err
		}
		hold := c.holdingOf(claim)
		finding, why := hold.judge(v, c.mine.UUID, c.seen)
		if finding != FoundOurs && !synced {
			// The server may lag behind. Decide only after a sync.
			synced = true
			if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
				return HeartbeatResult{Claim: claim}, err
			}
			continue
		}
		lost = lost || finding == FoundLost
		var beat HeartbeatResult
		switch {
		case finding == FoundFenced:
			// The record may also show that ZooKeeper has lost ours. Holders that are cut off
			// need a freeze then.
			lost := hold.showsLoss(v, c.mine.UUID)
			if lost {
				c.Note(c.lossOf(claim, v.cl, why))
				_ = c.Settle(ctx) // if it fails: Register tries again
			}
			c.dropTicket(ctx, claim.Ticket, claim.Node)
			return HeartbeatResult{}, &FencedError{claim.Worker, why, lost}
		case finding == FoundLost && (c.Now() >= claim.LeaseUntil || claim.over(c.Boot())):
			if _, err := c.raise(ctx, c.lossOf(claim, v.cl, why)); err != nil { // holders that are cut off may have leases that run
				return HeartbeatResult{Claim: claim}, err
			}
			c.dropTicket(ctx, claim.Ticket, claim.Node)
			if !claim.Confirmed {
				return HeartbeatResult{}, &FencedError{claim.Worker, why + ", and this node had not confirmed the worker", true}
			}
			return HeartbeatResult{}, &FencedError{claim.Worker, why + ", and the lease has expired", true}
		case finding == FoundLost:
			beat, err = c.reassert(ctx, hold, v, r, why)
		default:
			c.saw(*v.cl)
			beat, err = c.report(ctx, c.holdingOf(claim.adopt(*v.slot)), v, r)
			beat.Shown = c.locked == c.lockOf(claim.Worker)
		}
		if errors.Is(err, zkstore.ErrBadVersion) || errors.Is(err, zkstore.ErrExists) || errors.Is(err, zkstore.ErrNoNode) || errors.Is(err, errTakeBack) {
			claim.Ticket = beat.Claim.Ticket // there may be a new one
			continue                         // the record has changed: read it again
		}
		return beat, err
	}
}

// errTakeBack: the record was written confirmed, and must be written again, unconfirmed.
var errTakeBack = errors.New("the lease had expired by ZooKeeper's clock")

// report writes our slot again: it plans, writes, and accepts the acknowledgement.
func (c *Coordinator) report(ctx context.Context, hold holding, v view, r Report) (HeartbeatResult, error) {
	e := c.gather(r)
	beat := HeartbeatResult{Claim: hold.Claim}
	if e.now < v.cl.FrozenUntil {
		beat.FrozenUntil, beat.FrozenBy = v.cl.FrozenUntil, v.cl.FrozenBy
	}
	d := hold.plan(v, e, r)
	switch {
	case d.fenced != "":
		return beat, &FencedError{hold.Worker, d.fenced, false}
	case d.renew:
		// ZooKeeper does not know yet that the process began without it.
		g, err := c.writeNextTerm(ctx, hold.Claim, v, r.Lease)
		return HeartbeatResult{Claim: g.Claim, LeaseUntil: g.LeaseUntil, Clock: g.Clock, Wait: g.Wait, FrozenUntil: beat.FrozenUntil, FrozenBy: beat.FrozenBy}, err
	}
	c.holding = d.holding
	// The record says what this node has compared in its session, so it must not be written in the next one.
	after, written, err := c.write(zkstore.OnSession(ctx, e.session), d, v, hold.Worker)
	if written {
		c.holding = c.holding.acked(v, e, c.Boot())
		d.holding = c.holding
	}
	if err != nil {
		return beat, err
	}
	next, done, lapsed, takeBack := d.accept(v, after, e)
	c.holding = next
	if takeBack {
		return beat, errTakeBack
	}
	if lapsed {
		done.Wait = confirmTime(*v.cl)
	}
	done.FrozenUntil, done.FrozenBy = beat.FrozenUntil, beat.FrozenBy
	done.Clock = c.setReading(e.now, after)
	c.rtt = max(0, done.Clock.Acked-e.now)
	return done, nil
}

// write writes the record that d has. If that confirms the slot, the same transaction
// checks that the cluster's record has not changed, so that no freeze came in between. written
// means that the write was acknowledged, although the record's stat may be unknown.
func (c *Coordinator) write(ctx context.Context, d decision, v view, worker int) (after zkstore.Stat, written bool, err error) {
	set := zkstore.SetOp{Path: slotPath(worker), Data: d.slot.marshal(), Version: v.stat.Version}
	if d.cluster == nil && !d.confirms {
		after, err = c.Store.Set(ctx, set.Path, set.Data, set.Version)
		return after, err == nil, err
	}
	cl := *v.cl
	if d.cluster != nil {
		cl = *d.cluster
	}
	if err := c.Store.Multi(ctx, clusterOp(v, cl), set); err != nil {
		return zkstore.Stat{}, false, err
	}
	c.saw(cl)
	after, err = c.readBack(ctx, worker)
	return after, true, err
}

// clusterOp returns the operation that writes the cluster's record, if cl is not what v has, and checks otherwise that it
// has not changed.
func clusterOp(v view, cl Cluster) zkstore.Op {
	if cl != *v.cl {
		return zkstore.SetOp{Path: clusterPath, Data: cl.marshal(), Version: v.clStat.Version}
	}
	return zkstore.CheckOp{Path: clusterPath, Version: v.clStat.Version}
}

// Leased reports whether the claim's confirmed lease still runs by the wall clock, now in Unix ms, and by
// the boot clock in ns. While it runs no other node can take the slot.
func (c Claim) Leased(now, boot int64) bool {
	return c.Confirmed && now < c.LeaseUntil && !c.over(boot)
}

// over reports whether the lease has ended by the boot clock.
func (c Claim) over(boot int64) bool { return c.Ends != 0 && boot >= c.Ends }

// lasting returns the claim with a lease that ends at bound, Unix ms, when the wall clock reads now, and the boot clock boot.
func (c Claim) lasting(bound, now, boot int64) Claim {
	c.Ends = boot + (bound-now)*int64(time.Millisecond)
	return c
}

// readBack reads the stat of a slot that we have just written in a transaction, which
// returns no stat.
func (c *Coordinator) readBack(ctx context.Context, worker int) (zkstore.Stat, error) {
	_, stat, err := c.Store.Get(ctx, slotPath(worker))
	return stat, err
}
