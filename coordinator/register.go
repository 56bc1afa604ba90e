package coordinator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// growBy returns the number of slots that a cluster grows by at once: half of the slots that it uses, or 1/64 of all
// slots if that is more, but at least four. After each growth all other nodes that are taking a slot have to try again.
// So a thousand nodes that start together must not cause many growths.
func (c Cluster) growBy() int { return max(4, c.Slots/64, (c.HighestSlot+1)/2) }

// maxGrowth is the most records that one request creates.
const maxGrowth = 1024

// OldSlot is the slot that a node has left for another one. It must still be released, by ReleaseOld.
type OldSlot struct{ holder *holderState }

// Worker returns the worker of the slot.
func (s OldSlot) Worker() int { return s.holder.Worker }

// Register acquires a slot. cl is the cluster's record, as ReadCluster has just returned it. Register creates a ticket,
// calls check with the clocks of the leader and of the peers, and then tries the slots in order, starting at the
// ticket's number. It writes no slot before check has passed. confirm is the confirming time,
// which has just begun.
//
// If the node holds a slot, it leaves that one: the identity and the ticket stay, and old is the slot that it has left.
// If Register returns an error, the node still holds it.
//
// The node keeps the ticket of an attempt that ZooKeeper did not answer for the next one. If Register fails with
// another error after it has written the ticket, it deletes the ticket, unless this node holds a slot by it. Errors
// include *FullError, *FrozenError, *OtherClusterError, ErrNoCluster, and those of check, of the Ledger and of the
// store.
func (c *Coordinator) Register(ctx context.Context, cl Cluster, lease time.Duration, check ClockCheck) (
	old OldSlot, confirm time.Duration, _ error,
) {
	h := c.holder
	if h.stage != Seeking {
		// From here on h is about the next slot, and old about the one that the node still holds.
		old.holder, h = h, new(newHolderState(Claim{Owner: Owner{Node: h.Node}, Ticket: h.Ticket}))
	}
	err := c.AnnounceDue(ctx)
	if err == nil {
		err = c.dropStrayLock(ctx)
	}
	if err == nil && cl.UUID != c.mine.UUID {
		err = &OtherClusterError{Found: cl.UUID, Ours: c.mine.UUID}
	}
	if err != nil {
		return old, 0, err
	}
	c.noteCluster(cl)
	if cl.Frozen(c.Now()) { // an early look: acquireFree decides by both clocks (C21)
		return old, 0, &FrozenError{Until: cl.FrozenUntil, By: cl.FrozenBy}
	}
	if err := c.checkFree(ctx, cl); err != nil {
		return old, 0, err
	}
	clock, err := c.touchTicket(ctx, &h.Claim)
	if err != nil {
		return old, 0, err
	}
	c.reading = clock
	// A node that changes its worker has the ticket of the slot that it still holds, if ZooKeeper has not lost that.
	sharesTicket, own := old.holder != nil && h.Ticket == old.holder.Ticket, -1
	if sharesTicket {
		own = old.holder.Worker // else the node's own record would vote for the node's clock
	}
	if err = c.checkClocks(ctx, own, check); err == nil {
		err = c.acquireFree(ctx, h, lease)
	}
	if err != nil && !errors.Is(err, store.ErrUnreachable) && !sharesTicket {
		c.dropTicket(ctx, h.Ticket, h.Node)
		h.Ticket = ""
	}
	return old, c.mine.ConfirmTime(), err
}

// checkClocks calls check with the clocks of the leader and of the peers. own is our worker, -1 when we have none.
func (c *Coordinator) checkClocks(ctx context.Context, own int, check ClockCheck) error {
	peers, err := c.ReadPeerClocks(ctx, own, Beat{})
	if err != nil {
		return err
	}
	return check(c.reading, peers)
}

// acquireFree acquires the first free slot, starting at the number of the ticket. If another node changes the record of
// a slot or of the cluster meanwhile, acquireFree looks at that slot again.
func (c *Coordinator) acquireFree(ctx context.Context, h *holderState, lease time.Duration) error {
	ticket, err := ticketNumber(h.Ticket)
	if err != nil {
		return err
	}
	slots := c.mine.Slots
	full := &FullError{Slots: slots, grace: c.mine.graceMs()}
	for held := 0; held < slots; {
		worker := (firstSlot(ticket, slots) + held) % slots
		records, err := c.Store.GetAll(ctx, clusterPath, SlotPath(worker), lockPath(worker))
		if err != nil {
			return err
		}
		v, err := parsePair(records)
		if err == nil {
			err = v.checkCluster(c.mine)
		}
		if err != nil {
			return err
		}
		c.noteCluster(*v.cl)
		if worker > v.cl.HighestSlot {
			if err := c.grow(ctx, v, worker); err != nil {
				return err
			}
			continue
		}
		now := c.Now()
		leader := c.reading.leaderNow(now)
		//mutant:c21-clock-ahead-ends-a-freeze by TestClockAheadEndsNoFreeze -> if v.cl.Frozen(now) {
		if v.cl.Frozen(min(now, leader)) {
			return &FrozenError{Until: v.cl.FrozenUntil, By: v.cl.FrozenBy}
		}
		if v.slot == nil { // lost, or created after it was read: read it again
			if err := c.createStandIns(ctx, *v.cl); err != nil && !mustReread(err) {
				return err
			}
			continue
		}
		if a := v.cl.Availability(*v.slot, records[2].Found, now, leader); a != Free {
			full.add(a, v.slot.LeaseUntil)
			held++
			continue
		}
		if err = c.writeAcquired(ctx, h, worker, v, now, lease); !mustReread(err) {
			return err
		}
	}
	full.now = c.Now()
	return full
}

// grow creates free slots, at least up to worker, unless holders have restored them already in a ZooKeeper that had
// lost them. The same transaction raises HighestSlot, so that a missing slot up to HighestSlot was always lost. If a
// record has changed meanwhile, grow does nothing, and the caller reads again.
func (c *Coordinator) grow(ctx context.Context, v recordPair, worker int) error {
	cl, from, step := *v.cl, v.cl.HighestSlot+1, v.cl.growBy()
	cl.HighestSlot = min(cl.Slots, (worker/step+1)*step, from+maxGrowth) - 1
	create := func(workers []int) error {
		ops := []store.Op{clusterOp(v, cl)}
		for _, w := range workers {
			ops = append(ops, store.CreateOp{Path: SlotPath(w), Data: freeSlot().marshal()})
		}
		return c.Store.Multi(ctx, ops...)
	}
	slots := make([]int, cl.HighestSlot+1-from)
	for i := range slots {
		slots[i] = from + i
	}
	err := create(slots)
	if errors.Is(err, store.ErrExists) { // holders have restored some
		if slots, err = c.missingSlots(ctx, cl); err == nil {
			err = create(slices.DeleteFunc(slots, func(w int) bool { return w < from })) // below that it was lost
		}
	}
	switch {
	case errors.Is(err, store.ErrNoNode):
		return ensureRoot(ctx, c.Store)
	case mustReread(err):
		return nil
	}
	return err
}

// checkFree returns a *FullError if no slot is free. It reads the slots only if all of them have had a record. The sync
// of ReadCluster counts for these reads, too.
func (c *Coordinator) checkFree(ctx context.Context, cl Cluster) error {
	if cl.HighestSlot+1 < cl.Slots {
		return nil
	}
	live, err := liveWorkers(ctx, c.Store)
	if err != nil {
		return err
	}
	now, free := c.Now(), false
	full := &FullError{Slots: cl.Slots, now: now, grace: cl.graceMs()}
	err = eachRecord(ctx, c.Store, slotPaths(0, cl.Slots-1), func(worker int, r store.Record) bool {
		if !r.Found {
			free = true // lost: acquireFree replaces it
			return false
		}
		slot := parseSlot(r.Data)
		a := cl.Availability(slot, live[worker], now, now)
		free = a == Free
		full.add(a, slot.LeaseUntil)
		return !free
	})
	if err != nil || free {
		return err
	}
	return full
}
