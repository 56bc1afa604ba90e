package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// Grant is a slot written and acknowledged.
type Grant struct {
	Claim Claim
	// H is the acknowledged lease bound. It counts once the grant is settled;
	// until then the claim's own does.
	H int64
	// Settle is how long to wait before the heartbeat that settles it; 0 when
	// ZooKeeper is known to have lost nothing.
	Settle time.Duration
	// Clock is our clock against the leader's.
	Clock Reading
}

// growBy is how many slots a cluster grows by at once: half of those that it uses, a
// sixty-fourth of all, and four at least. Each growth has all others who are taking a
// slot begin anew, so a thousand nodes that start together must not cause many.
func (c Cluster) growBy() int { return max(4, c.Slots/64, (c.Used+1)/2) }

// growMost bounds how much one request makes.
const growMost = 1024

// Register takes a slot for a new node. cl is the cluster's record, as the caller has
// just read it. Register refuses early when there is none,
// draws a ticket, has the clock checked against ZooKeeper's and the peers'
// before it writes any slot, and looks for a slot from the ticket's number on.
// It leaves no ticket behind when it is refused.
//
// The claim names the node, and a ticket if it has one from an attempt that
// ZooKeeper did not answer; the grant returned with an error does so for the
// next attempt. Errors are *FullError, *FrozenError, *OtherClusterError, those
// of check and of the store.
func (c *Coordinator) Register(ctx context.Context, cl Cluster, claim Claim, lease time.Duration, check ClockCheck) (Grant, error) {
	err := c.unlock(ctx)
	if err == nil {
		err = c.checkRegister(ctx, cl)
	}
	if err != nil {
		return Grant{Claim: claim}, err
	}
	clock, err := c.touchTicket(ctx, &claim)
	if err != nil {
		return Grant{Claim: claim}, err
	}
	grant, err := c.registerWith(ctx, claim, clock, lease, check)
	if err != nil && !errors.Is(err, zkstore.ErrUnreachable) {
		c.dropTicket(ctx, claim.Ticket, claim.Node)
		claim.Ticket = ""
	}
	if err != nil {
		grant = Grant{Claim: claim}
	}
	return grant, err
}

// checkRegister returns an error if registration is frozen or all slots are held. It
// writes nothing.
func (c *Coordinator) checkRegister(ctx context.Context, cl Cluster) error {
	if cl.UUID != c.mine.UUID {
		return &OtherClusterError{Found: cl.UUID, Ours: c.mine.UUID}
	}
	c.remember(cl.Used)
	if cl.AllFrozen(c.Now()) {
		return &FrozenError{Until: cl.FrozenUntil, By: cl.FrozenBy}
	}
	full, err := c.isFull(ctx, cl)
	if err != nil || full == nil {
		return err
	}
	// The server that we asked may lag behind.
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return err
	}
	if full, err = c.isFull(ctx, cl); err != nil || full == nil {
		return err
	}
	return full
}

func (c *Coordinator) registerWith(ctx context.Context, claim Claim, clock Reading, lease time.Duration, check ClockCheck) (Grant, error) {
	peers, err := c.Peers(ctx, -1)
	if err != nil {
		return Grant{}, err
	}
	if err := check(clock, peers); err != nil {
		return Grant{}, err
	}
	return c.acquireFree(ctx, claim, clock, lease)
}

// acquireFree looks for a free slot from the claim's ticket on and takes it.
func (c *Coordinator) acquireFree(ctx context.Context, claim Claim, clock Reading, lease time.Duration) (Grant, error) {
	ticket, err := ticketNumber(claim.Ticket)
	if err != nil {
		return Grant{}, err
	}
	cl := c.mine
	full := &FullError{Slots: cl.Slots, grace: cl.graceMs()}
	first := firstSlot(ticket, cl.Slots)
	var frozen *FrozenError
	for k := range cl.Slots {
		claim.Worker = (first + k) % cl.Slots
		grant, a, err := c.acquireIfFree(ctx, claim, clock, lease)
		switch {
		case errors.As(err, &frozen):
		case err != nil || a == Free:
			return grant, err
		default:
			full.add(a, grant.H)
		}
	}
	if frozen != nil {
		return Grant{}, frozen
	}
	full.now = c.Now()
	return Grant{}, full
}

// acquireIfFree takes one slot if it is free. If it is not, Availability says why, and the
// grant's H is that of whoever holds it. When another is faster it tries again.
func (c *Coordinator) acquireIfFree(ctx context.Context, claim Claim, clock Reading, lease time.Duration) (Grant, Availability, error) {
	for {
		v, err := c.readView(ctx, claim.Worker)
		if err != nil {
			return Grant{}, 0, err
		}
		cl, clStat := v.cl, v.clStat
		if cl == nil {
			return Grant{}, 0, ErrNoCluster
		}
		if cl.UUID != c.mine.UUID {
			return Grant{}, 0, &OtherClusterError{Found: cl.UUID, Ours: c.mine.UUID}
		}
		c.remember(cl.Used)
		if claim.Worker > cl.Used {
			if err := c.grow(ctx, *cl, clStat, claim.Worker); err != nil {
				return Grant{}, 0, err
			}
			continue
		}
		now := c.Now()
		if cl.Frozen(claim.Worker, min(now, clock.leaderNow(now))) {
			return Grant{}, 0, &FrozenError{Until: cl.FrozenUntil, By: cl.FrozenBy}
		}
		if v.slot == nil {
			// It may have been read before the cluster's record, and made in between.
			slot, _, err := c.slot(ctx, claim.Worker)
			if err != nil {
				return Grant{}, 0, err
			}
			if slot != nil {
				continue
			}
			h, err := c.replaceLost(ctx, *cl, claim.Worker)
			return Grant{H: h}, Detached, err
		}
		if a := cl.JudgeFree(*v.slot, v.lock.Found, now, clock.leaderNow(now)); a != Free {
			return Grant{H: v.slot.H}, a, nil
		}
		grant, err := c.writeAcquired(ctx, claim, v, now, lease)
		grant.Clock = clock
		if !errors.Is(err, zkstore.ErrBadVersion) && !errors.Is(err, zkstore.ErrNoNode) {
			return grant, Free, err
		}
	}
}

// leaderNow is the earliest the leader's clock can be when ours reads now.
func (r Reading) leaderNow(now int64) int64 { return r.Stamp + (now - r.Acked) }

// grow makes records for slots up to at least worker, free, in one step with
// raising Used: a slot that is absent below Used has been lost, always.
func (c *Coordinator) grow(ctx context.Context, cl Cluster, stat zkstore.Stat, worker int) error {
	from := cl.Used + 1
	step := cl.growBy()
	cl.Used = min(cl.Slots, (worker/step+1)*step, from+growMost) - 1
	ops := []zkstore.Op{zkstore.SetOp{Path: clusterPath, Data: cl.marshal(), Version: stat.Version}}
	for w := from; w <= cl.Used; w++ {
		ops = append(ops, zkstore.CreateOp{Path: slotPath(w), Data: freeSlot().marshal()})
	}
	err := c.Store.Multi(ctx, ops...)
	switch {
	case errors.Is(err, zkstore.ErrBadVersion):
		return nil // another was faster: look again
	case errors.Is(err, zkstore.ErrExists):
		return c.growOver(ctx, cl, stat, from)
	case errors.Is(err, zkstore.ErrNoNode):
		return ensureRoot(ctx, c.Store) // and look again
	}
	return err
}

// growOver raises Used where records are there already beyond it: owners have
// put theirs back into a ZooKeeper that had lost them.
func (c *Coordinator) growOver(ctx context.Context, cl Cluster, stat zkstore.Stat, from int) error {
	ops := []zkstore.Op{zkstore.SetOp{Path: clusterPath, Data: cl.marshal(), Version: stat.Version}}
	err := eachRecord(ctx, c.Store, slotPaths(from, cl.Used), func(i int, r zkstore.Record) bool {
		if !r.Found {
			ops = append(ops, zkstore.CreateOp{Path: slotPath(from + i), Data: freeSlot().marshal()})
		}
		return true
	})
	if err != nil {
		return err
	}
	err = c.Store.Multi(ctx, ops...)
	if errors.Is(err, zkstore.ErrBadVersion) || errors.Is(err, zkstore.ErrExists) {
		return nil // changed meanwhile: look again
	}
	return err
}

// writeAcquired writes a free slot as ours. zkstore.ErrBadVersion or zkstore.ErrNoNode when
// the slot or the cluster record changed.
func (c *Coordinator) writeAcquired(ctx context.Context, claim Claim, v view, now int64, lease time.Duration) (Grant, error) {
	cl, old := *v.cl, *v.slot
	claim.Term, claim.Nonce, claim.Settled, claim.H = old.Term, "", false, 0
	claim.Lo = max(now, old.H)
	claim.M = claim.Lo
	claim, slot, err := c.nextGrant(claim, cl, old, lease)
	if err != nil {
		return Grant{}, err
	}
	err = c.Store.Multi(ctx,
		zkstore.CheckOp{Path: clusterPath, Version: v.clStat.Version},
		zkstore.SetOp{Path: slotPath(claim.Worker), Data: slot.marshal(), Version: v.stat.Version})
	if err != nil {
		return Grant{}, err // outcome unknown: the stored claim tells at the next start
	}
	claim = c.setHolding(claim, cl, v.stat.Version+1)
	c.setCompared(slot.H, c.latest.Epoch()) // the ticket's: that of the slot, or one before
	if old.Ticket != "" && old.Ticket != claim.Ticket {
		c.dropTicket(ctx, old.Ticket, old.Node)
	}
	return Grant{Claim: claim, H: slot.H, Settle: c.settling(ctx, cl, claim.Worker)}, nil
}

// isFull says why no slot is free, by the server that is asked; nil where one is. It
// looks only once all of them have been used.
func (c *Coordinator) isFull(ctx context.Context, cl Cluster) (*FullError, error) {
	if cl.Used+1 < cl.Slots {
		return nil, nil
	}
	live, err := liveWorkers(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	now, free := c.Now(), false
	full := &FullError{Slots: cl.Slots, now: now, grace: cl.graceMs()}
	err = eachRecord(ctx, c.Store, slotPaths(0, cl.Slots-1), func(worker int, r zkstore.Record) bool {
		if !r.Found {
			free = true // lost: to be put right on the way
			return false
		}
		slot := parseSlot(r.Data)
		a := cl.JudgeFree(slot, live[worker], now, now)
		free = a == Free
		full.add(a, slot.H)
		return !free
	})
	if err != nil || free {
		return nil, err
	}
	return full, nil
}
