package coordinator

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/flaked/flaked/zkstore"
)

// GoLive makes the live lock of a slot that is ours, in the present session.
// One that is there already is of a session before (ours, after a crash) or of
// a holder whose lease ran out: the slot's record has decided that, the lock
// decides nothing.
func (c *Coordinator) GoLive(ctx context.Context, claim Claim) error {
	path := lockPath(claim.Worker)
	for {
		_, stat, err := c.Store.Get(ctx, path)
		if err == nil && stat.Owner == c.Store.SessionID() {
			return nil
		}
		if err == nil {
			err = c.Store.Delete(ctx, path, stat.Version)
		}
		if err != nil && !errors.Is(err, zkstore.ErrNoNode) {
			return err
		}
		_, err = c.Store.Create(ctx, path, mustMarshal(ticket{Node: claim.Node, Labels: c.Labels}), zkstore.Ephemeral)
		if errors.Is(err, zkstore.ErrNoNode) {
			if err = ensureRoot(ctx, c.Store); err == nil {
				continue
			}
		}
		if !errors.Is(err, zkstore.ErrExists) {
			return err
		}
	}
}

// unlock deletes the live lock of a slot that we were fenced from: our session
// would keep the slot from everybody, us included, for as long as it lasts.
func (c *Coordinator) unlock(ctx context.Context) error {
	if c.fenced < 0 {
		return nil
	}
	err := c.GoDark(ctx, c.fenced)
	if err == nil {
		c.fenced = -1
	}
	return err
}

// GoDark deletes the live lock if it is of the present session: the slot may
// be taken once its bound has passed.
func (c *Coordinator) GoDark(ctx context.Context, worker int) error {
	return c.goDark(ctx, worker, "")
}

// goDark deletes the live lock of the present session, or of a session before
// of the node named: one that was killed leaves its lock behind for a while.
func (c *Coordinator) goDark(ctx context.Context, worker int, node string) error {
	path := lockPath(worker)
	data, stat, err := c.Store.Get(ctx, path)
	var lock ticket
	if err == nil && (stat.Owner == c.Store.SessionID() || node != "" && json.Unmarshal(data, &lock) == nil && lock.Node == node) {
		err = c.Store.Delete(ctx, path, stat.Version)
	}
	if errors.Is(err, zkstore.ErrNoNode) {
		return nil
	}
	return err
}
