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
		v, err := c.readView(ctx, claim.Worker)
		if err != nil {
			return Beat{Claim: claim}, err
		}
		hold := c.holdingOf(claim)
		finding, why := hold.judge(v, c.mine.UUID)
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
			if hold.wentBack(v.slot, v.stat) && claim.leased(c.Now()) {
				// Other owners may be cut off. If this fails, another owner or a newcomer
				// freezes: our own slot is lost in any case.
				_, _ = c.freeze(ctx, claim, why)
			}
			c.dropTicket(ctx, claim.Ticket, claim.Node)
			return Beat{}, &FencedError{claim.Worker, why}
		case finding == FoundLost && c.Now() >= claim.H:
			if c.mustFreeze(v.cl, claim) {
				if _, err := c.freeze(ctx, claim, why); err != nil { // other owners may be cut off
					return Beat{Claim: claim}, err
				}
			}
			c.dropTicket(ctx, claim.Ticket, claim.Node)
			if !claim.Settled {
				return Beat{}, &FencedError{claim.Worker, why + ", and this node had not settled on it"}
			}
			return Beat{}, &FencedError{claim.Worker, why + ", and the lease has run out"}
		case finding == FoundLost:
			beat, err = c.reassert(ctx, hold, v, r, why)
		default:
			c.remember(v.cl.Used)
			beat, err = c.report(ctx, c.holdingOf(claim.adopt(*v.slot)), v, r)
			beat.Shown = v.lock.Found && v.lock.Stat.Owner == c.Store.SessionID() // as it is after the write
		}
		if errors.Is(err, zkstore.ErrBadVersion) || errors.Is(err, zkstore.ErrExists) || errors.Is(err, zkstore.ErrNoNode) || errors.Is(err, errTakeBack) {
			claim.Ticket = beat.Claim.Ticket // it may have been drawn anew
			continue                         // changed meanwhile: what it is now decides
		}
		return beat, err
	}
}

// errTakeBack: the record was written settled, and must not stay so.
var errTakeBack = errors.New("coordinator: the lease had run out by ZooKeeper's clock")

// report writes our slot again.
func (c *Coordinator) report(ctx context.Context, hold holding, v view, r Report) (Beat, error) {
	e := c.gather(r)
	beat := Beat{Claim: hold.Claim}
	if e.now < v.cl.FrozenUntil {
		beat.FrozenUntil = v.cl.FrozenUntil
	}
	d := hold.plan(v, e, r)
	switch {
	case d.fenced != "":
		return beat, &FencedError{hold.Worker, d.fenced}
	case d.renew:
		// ZooKeeper does not know yet that the process began without it.
		g, err := c.writeNextTerm(ctx, hold.Claim, *v.cl, *v.slot, v.stat, r.Lease)
		return Beat{Claim: g.Claim, H: g.H, Clock: g.Clock, Wait: g.Settle, FrozenUntil: beat.FrozenUntil}, err
	}
	c.holding = d.holding
	after, err := c.write(ctx, d, v, hold.Worker)
	if err != nil {
		return beat, err
	}
	next, done, lapsed, takeBack := d.accept(v, after, e)
	c.holding = next
	if takeBack {
		return beat, errTakeBack
	}
	if lapsed {
		done.Wait = c.settling(ctx, *v.cl, hold.Worker)
		c.holding.notBefore = e.now + done.Wait.Milliseconds() // less than planned, where nothing was lost
	}
	done.FrozenUntil = beat.FrozenUntil
	done.Clock = c.setReading(e.now, after)
	c.rtt = max(0, done.Clock.Acked-e.now)
	return done, nil
}

// write writes what was decided. A slot is settled in one step with the proof that the
// cluster's record has not changed, so that no freeze has come in between. The first node
// to settle in a cluster settles that record too.
func (c *Coordinator) write(ctx context.Context, d decision, v view, worker int) (zkstore.Stat, error) {
	if !d.settles {
		return c.Store.Set(ctx, slotPath(worker), d.slot.marshal(), v.stat.Version)
	}
	var first zkstore.Op = zkstore.CheckOp{Path: clusterPath, Version: v.clStat.Version}
	if cl := *v.cl; !cl.Settled {
		cl.Settled = true
		first = zkstore.SetOp{Path: clusterPath, Data: cl.marshal(), Version: v.clStat.Version}
	}
	if err := c.Store.Multi(ctx, first, zkstore.SetOp{Path: slotPath(worker), Data: d.slot.marshal(), Version: v.stat.Version}); err != nil {
		return zkstore.Stat{}, err
	}
	c.holding.written, c.holding.version = true, v.stat.Version+1 // reading it may fail
	return c.readBack(ctx, worker)
}

// leased tells whether a settled lease is still running. While it does nobody
// can have taken the slot: it takes a bound that has passed.
func (c Claim) leased(now int64) bool { return c.Settled && now < c.H }

// readBack reads the stat of a slot just written, where the write gave none.
func (c *Coordinator) readBack(ctx context.Context, worker int) (zkstore.Stat, error) {
	_, stat, err := c.Store.Get(ctx, slotPath(worker))
	return stat, err
}
