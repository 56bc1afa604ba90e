package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Grant is a slot whose record was written for this node and acknowledged.
type Grant struct {
	// LeaseUntil is the acknowledged lease bound, Unix ms. It counts once the grant is confirmed.
	// Until then the lease bound of the claim counts.
	LeaseUntil int64
	// Wait is the time before the heartbeat that confirms the slot, unless a peer vouches for
	// ZooKeeper before. 0: the grant goes on where the process before has stopped.
	Wait time.Duration
	// Clock is our clock against the leader's.
	Clock Reading
}

// growBy returns the number of slots that a cluster grows by at once: half of the slots
// that it uses, or 1/64 of all slots if that is more, but at least four. After each growth
// all other nodes that are taking a slot have to try again. So a thousand nodes that start
// together must not cause many growths.
func (c Cluster) growBy() int { return max(4, c.Slots/64, (c.HighestSlot+1)/2) }

// growMost is the most records that one request creates.
const growMost = 1024

// Register acquires a slot for a new node. cl is the cluster's record, as the caller has
// just read it. Register creates a ticket, calls check with the clocks of the leader and of
// the peers, and then tries the slots in order, starting at the ticket's number. It writes
// no slot before check has passed.
//
// The Hold keeps the ticket of an attempt that ZooKeeper did not answer for the next one. After any other error
// Register deletes the ticket, unless this node holds a slot by it. Errors are *FullError,
// *FrozenError, *OtherClusterError, those of check and those of the store.
func (h *Hold) Register(ctx context.Context, cl Cluster, lease time.Duration, check ClockCheck) (Grant, error) {
	c := h.co
	err := c.Settle(ctx)
	if err == nil {
		err = c.unlock(ctx)
	}
	if err == nil {
		err = c.checkRegister(ctx, cl)
	}
	if err != nil {
		return Grant{}, err
	}
	clock, err := c.touchTicket(ctx, &h.Claim)
	if err != nil {
		return Grant{}, err
	}
	c.reading = clock
	grant, err := h.registerWith(ctx, clock, lease, check)
	// A node that changes its worker has the ticket of the slot that it still holds. In a wiped
	// ZooKeeper a new node's ticket may have the same name.
	holds := c.hold != nil && c.hold != h && h.Ticket == c.hold.Ticket && h.Node == c.hold.Node
	if err != nil && !errors.Is(err, store.ErrUnreachable) && !holds {
		c.dropTicket(ctx, h.Ticket, h.Node)
		h.Ticket = ""
	}
	return grant, err
}

// checkRegister returns an error if registration is frozen or no slot is free. It writes
// nothing.
func (c *Coordinator) checkRegister(ctx context.Context, cl Cluster) error {
	if cl.UUID != c.mine.UUID {
		return &OtherClusterError{Found: cl.UUID, Ours: c.mine.UUID}
	}
	c.saw(cl)
	if cl.Frozen(c.Now()) {
		return &FrozenError{Until: cl.FrozenUntil, By: cl.FrozenBy}
	}
	full, err := c.isFull(ctx, cl)
	if err != nil || full == nil {
		return err
	}
	// The server that we asked may lag behind.
	if err := c.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	if full, err = c.isFull(ctx, cl); err != nil || full == nil {
		return err
	}
	return full
}

func (h *Hold) registerWith(ctx context.Context, clock Reading, lease time.Duration, check ClockCheck) (Grant, error) {
	peers, err := h.co.Peers(ctx, -1)
	if err != nil {
		return Grant{}, err
	}
	if err := check(clock, peers); err != nil {
		return Grant{}, err
	}
	return h.acquireFree(ctx, clock, lease)
}

// acquireFree acquires the first free slot, starting at the number of the ticket.
func (h *Hold) acquireFree(ctx context.Context, clock Reading, lease time.Duration) (Grant, error) {
	ticket, err := ticketNumber(h.Ticket)
	if err != nil {
		return Grant{}, err
	}
	cl := h.co.mine
	full := &FullError{Slots: cl.Slots, grace: cl.graceMs()}
	first := firstSlot(ticket, cl.Slots)
	for k := range cl.Slots {
		grant, a, err := h.acquireIfFree(ctx, (first+k)%cl.Slots, clock, lease)
		if err != nil || a == Free {
			return grant, err
		}
		full.add(a, grant.LeaseUntil)
	}
	full.now = h.co.Now()
	return Grant{}, full
}

// acquireIfFree acquires a slot if it is free. If not, it returns why, and a
// grant with the lease bound of the present holder. It tries again if another node changed
// a record meanwhile.
func (h *Hold) acquireIfFree(ctx context.Context, worker int, clock Reading, lease time.Duration) (Grant, Availability, error) {
	c := h.co
	for {
		records, err := c.Store.GetAll(ctx, clusterPath, slotPath(worker), lockPath(worker))
		if err != nil {
			return Grant{}, 0, err
		}
		v, err := parseView(records)
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
		c.saw(*cl)
		if worker > cl.HighestSlot {
			if err := c.grow(ctx, *cl, clStat, worker); err != nil {
				return Grant{}, 0, err
			}
			continue
		}
		now := c.Now()
		//mutant:c21-clock-ahead-ends-a-freeze by TestClockAheadEndsNoFreeze -> if cl.Frozen(now) {
		if cl.Frozen(min(now, clock.leaderNow(now))) {
			return Grant{}, 0, &FrozenError{Until: cl.FrozenUntil, By: cl.FrozenBy}
		}
		if v.slot == nil {
			// The slot may have been created after it was read: read it again.
			slot, _, err := c.slot(ctx, worker)
			if err != nil {
				return Grant{}, 0, err
			}
			if slot != nil {
				continue
			}
			until, err := c.replaceLost(ctx, *cl, worker)
			return Grant{LeaseUntil: until}, Disconnected, err
		}
		if a := cl.JudgeFree(*v.slot, records[2].Found, now, clock.leaderNow(now)); a != Free {
			return Grant{LeaseUntil: v.slot.LeaseUntil}, a, nil
		}
		grant, err := h.writeAcquired(ctx, worker, v, now, lease)
		grant.Clock = clock
		if !errors.Is(err, store.ErrBadVersion) && !errors.Is(err, store.ErrNoNode) {
			return grant, Free, err
		}
	}
}

// leaderNow returns the earliest time that the leader's clock can have when ours reads now,
// Unix ms.
func (r Reading) leaderNow(now int64) int64 { return r.Stamp + (now - r.Acked) }

// grow creates free slots, at least up to worker. The same transaction raises HighestSlot, so that
// a missing slot up to HighestSlot was always lost.
func (c *Coordinator) grow(ctx context.Context, cl Cluster, stat store.Stat, worker int) error {
	from := cl.HighestSlot + 1
	step := cl.growBy()
	cl.HighestSlot = min(cl.Slots, (worker/step+1)*step, from+growMost) - 1
	ops := []store.Op{store.SetOp{Path: clusterPath, Data: cl.marshal(), Version: stat.Version}}
	for w := from; w <= cl.HighestSlot; w++ {
		ops = append(ops, store.CreateOp{Path: slotPath(w), Data: freeSlot().marshal()})
	}
	err := c.Store.Multi(ctx, ops...)
	switch {
	case errors.Is(err, store.ErrBadVersion):
		return nil // another node was faster: the caller reads again
	case errors.Is(err, store.ErrExists):
		return c.growOver(ctx, cl, stat, from)
	case errors.Is(err, store.ErrNoNode):
		return ensureRoot(ctx, c.Store) // then the caller reads again
	}
	return err
}

// growOver raises HighestSlot where some records above it exist already: holders have put them
// back into a ZooKeeper that had lost them.
func (c *Coordinator) growOver(ctx context.Context, cl Cluster, stat store.Stat, from int) error {
	ops := []store.Op{store.SetOp{Path: clusterPath, Data: cl.marshal(), Version: stat.Version}}
	err := eachRecord(ctx, c.Store, slotPaths(from, cl.HighestSlot), func(i int, r store.Record) bool {
		if !r.Found {
			ops = append(ops, store.CreateOp{Path: slotPath(from + i), Data: freeSlot().marshal()})
		}
		return true
	})
	if err != nil {
		return err
	}
	err = c.Store.Multi(ctx, ops...)
	if errors.Is(err, store.ErrBadVersion) || errors.Is(err, store.ErrExists) {
		return nil // changed meanwhile: the caller reads again
	}
	return err
}

// writeAcquired writes a free slot as ours. The error is store.ErrBadVersion or
// store.ErrNoNode if the slot or the cluster's record has changed.
func (h *Hold) writeAcquired(ctx context.Context, worker int, v view, now int64, lease time.Duration) (Grant, error) {
	c := h.co
	cl, old := v.cl.withHorizon(c.gather(Report{}).agreedNow(), lease), *v.slot
	//mutant:c2-floor-at-now by sim -> floor := now
	floor := max(now, old.LeaseUntil)
	h.holding = holding{Claim: Claim{Node: h.Node, Ticket: h.Ticket, Worker: worker, Term: old.Term, Floor: floor, ReservedUntil: floor}}
	slot, err := h.nextGrant(cl, old, lease, false)
	if err != nil {
		return Grant{}, err
	}
	sent := c.Boot()
	//mutant:c8-acquire-over-any-version by sim -> err = c.Store.Multi(ctx, clusterOp(v, cl), store.SetOp{Path: slotPath(worker), Data: slot.marshal(), Version: store.AnyVersion})
	err = c.Store.Multi(ctx, clusterOp(v, cl), store.SetOp{Path: slotPath(worker), Data: slot.marshal(), Version: v.stat.Version})
	if err != nil {
		return Grant{}, err // the outcome may be unknown: the next start reads the saved claim
	}
	h.begin(cl, sent, v.stat.Version+1, slot.LeaseUntil)
	c.saw(cl)
	if old.Ticket != "" && old.Ticket != h.Ticket {
		c.dropTicket(ctx, old.Ticket, old.Node)
	}
	grant := Grant{LeaseUntil: slot.LeaseUntil, Wait: confirmTime(cl)}
	h.waits(grant.Wait, false)
	return grant, nil
}

// isFull returns an error with the reasons why no slot is free, or nil if one is free. The
// server may lag behind. isFull reads the slots only if all of them have been used.
func (c *Coordinator) isFull(ctx context.Context, cl Cluster) (*FullError, error) {
	if cl.HighestSlot+1 < cl.Slots {
		return nil, nil
	}
	live, err := liveWorkers(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	now, free := c.Now(), false
	full := &FullError{Slots: cl.Slots, now: now, grace: cl.graceMs()}
	err = eachRecord(ctx, c.Store, slotPaths(0, cl.Slots-1), func(worker int, r store.Record) bool {
		if !r.Found {
			free = true // lost: acquireIfFree replaces it
			return false
		}
		slot := parseSlot(r.Data)
		a := cl.JudgeFree(slot, live[worker], now, now)
		free = a == Free
		full.add(a, slot.LeaseUntil)
		return !free
	})
	if err != nil || free {
		return nil, err
	}
	return full, nil
}
