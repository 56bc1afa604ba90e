package coordinator

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/store"
)

// lock identifies a live lock of ours. While its session goes on, the lock disappears only with a change of the list of
// live workers, so that it need not be read at every heartbeat.
type lock struct {
	worker  int
	session int64
	list    listVersion
}

// lockOf returns the live lock that a worker of ours should have now.
func (c *Coordinator) lockOf(worker int) lock {
	return lock{worker, c.Store.SessionID(), c.live.present}
}

// EnsureLiveLock makes the live lock of our slot one of the present session. It replaces the lock of another session:
// of an earlier one of ours, or of a holder whose lease has run out. Once our confirmed lease has run out,
// EnsureLiveLock deletes the lock instead: while a lock exists, no other node acquires the slot. Whether this node
// still holds the slot, only the slot's record says.
func (c *Coordinator) EnsureLiveLock(ctx context.Context) error {
	h := c.holder
	// The issuing clock alone, because the node issues by that: it must keep the lock for as long as it may issue.
	if h.EverConfirmed && c.Now() >= h.LeaseUntil {
		return c.deleteLiveLock(ctx, h.Worker, "")
	}
	if c.seenLock == c.lockOf(h.Worker) {
		return nil
	}
	path := lockPath(h.Worker)
	data := store.Marshal(ticket{Node: h.Node, Labels: c.Labels})
	for {
		want := c.lockOf(h.Worker)
		_, stat, err := c.Store.Get(ctx, path)
		switch {
		case err == nil && stat.EphemeralOwner == want.session:
			c.seenLock = want
			return nil
		// The new lock is not noted in c.seenLock: it changes the list, and the next heartbeat looks at both again.
		case err == nil: // in one transaction, so that the node counts as live all the time
			err = c.Store.Multi(ctx, store.DeleteOp{Path: path, Version: stat.Version},
				store.CreateOp{Path: path, Data: data, Ephemeral: true})
		case errors.Is(err, store.ErrNoNode):
			err = create(ctx, c.Store, path, data, store.Ephemeral)
		}
		if !mustReread(err) {
			return err
		}
	}
}

// dropStrayLock deletes the live lock of a slot that this node has given up. While the lock exists no node can take the
// slot, not even this one.
func (c *Coordinator) dropStrayLock(ctx context.Context) error {
	if c.strayLock < 0 {
		return nil
	}
	err := c.deleteLiveLock(ctx, c.strayLock, "")
	if err == nil {
		c.strayLock = -1
	}
	return err
}

// deleteLiveLock deletes the live lock if it belongs to the present session, or to an earlier one of the given node: a
// killed process leaves its lock until its session expires.
func (c *Coordinator) deleteLiveLock(ctx context.Context, worker int, node string) error {
	c.seenLock = lock{}
	path := lockPath(worker)
	data, stat, err := c.Store.Get(ctx, path)
	if err == nil && (stat.EphemeralOwner == c.Store.SessionID() || node != "" && parseTicket(data).Node == node) {
		err = c.Store.Delete(ctx, path, stat.Version)
	}
	if errors.Is(err, store.ErrNoNode) {
		return nil
	}
	return err
}
