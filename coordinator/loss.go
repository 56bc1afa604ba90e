package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
)

// clocksApart is the greatest difference between two clocks that the rules allow for, in milliseconds.
const clocksApart = int64(limits.ClocksApart / time.Millisecond)

// Loss is a finding that ZooKeeper has lost data, or has older data than the finder knows. Coordinator.raise writes it,
// whichever part of the node has found it.
type Loss struct {
	// Known is the incarnation that the finder knew.
	Known int64
	// MayRecreate: the finder puts its cluster back where the record is missing, or in the place of another one
	// in which no node has confirmed (C22). It has confirmed a worker, or PutClusterBack was called.
	MayRecreate bool
	// LeaseUntil is the finder's lease bound, Unix ms.
	LeaseUntil int64
	// Found says what shows the loss.
	Found string
}

// lossOf returns a finding of the holder. cl is the cluster's record that was read with what shows the loss, nil if it
// is missing. A record of the holder that is lost or older shows a loss since the incarnation in which it was written,
// and perhaps another node has noticed that.
func (h *Hold) lossOf(cl *Cluster, found string) Loss {
	l := Loss{Known: h.Incarnation, MayRecreate: h.EverConfirmed, LeaseUntil: h.LeaseUntil, Found: found}
	if h.over(h.co.Elapsed.Now().Boot) {
		l.LeaseUntil = 0
	}
	if cl == nil || cl.Incarnation < h.co.mine.Incarnation {
		l.Known = max(l.Known, h.co.mine.Incarnation)
	}
	return l
}

// after returns the cluster's record that a finder writes, or ok = false if it must write none. found is the record in
// ZooKeeper, nil if there is none, mine the cluster as the finder knows it, and now the later of its clock and the
// leader's, Unix ms. leased: the finder's lease runs.
//
// The incarnation grows, unless it has since the finder knew it (C20). Registration is frozen (C21) until no holder can
// have a lease any more: until each horizon that the finder knows. All slots are frozen, because the cluster may have
// grown while the finder was cut off. Where another finder has raised the incarnation, a finder whose lease runs only
// makes the freeze longer if that would end too early: older data can bring back an older freeze.
func (l Loss) after(found *Cluster, mine Cluster, now int64, leased bool) (next Cluster, ok bool) {
	next = mine
	//mutant:c20-loss-raises-no-incarnation by sim -> next.InUse, next.Incarnation = leased, l.Known
	next.InUse, next.Incarnation = leased, l.Known+1
	if found == nil || found.UUID != mine.UUID {
		// Only a finder that has confirmed puts its cluster there (C22).
		empty := found == nil || !found.InUse
		next.Horizon = next.nextHorizon(now)
		//mutant:c21-loss-freezes-nothing by sim -> next.FrozenUntil, next.FrozenBy = 0, ""
		next.FrozenUntil, next.FrozenBy = next.Horizon, ""
		//mutant:c22-newcomer-puts-a-cluster-back by TestUnconfirmedNodeDoesNotRecreateTheCluster -> return next, empty
		return next, empty && l.MayRecreate
	}
	raised := found.Incarnation > l.Known
	if raised && (!leased || found.FrozenUntil >= max(mine.Horizon, mine.lastLease(now))) {
		return *found, false
	}
	next.InUse = next.InUse || found.InUse
	next.HighestSlot = max(found.HighestSlot, mine.HighestSlot)
	next.Horizon = max(found.Horizon, next.nextHorizon(now))
	//mutant:c21-loss-freezes-nothing -> next.FrozenUntil, next.FrozenBy = found.FrozenUntil, ""
	next.FrozenUntil, next.FrozenBy = max(found.FrozenUntil, next.Horizon), ""
	if raised {
		next.Incarnation, next.FrozenBy = found.Incarnation, found.FrozenBy
	}
	return next, true
}

// raise makes a loss of data known to the whole cluster: it raises the incarnation and freezes registration. It returns
// the cluster's record as it is then, and the zero Cluster if that is missing or another cluster's and the finder must
// not put its own there. The error is store.ErrBadVersion if a node has confirmed in the other cluster.
func (c *Coordinator) raise(ctx context.Context, l Loss) (Cluster, error) {
	c.Logger.Error("ZooKeeper has lost data; freezing registration", "found", l.Found, "incarnation", l.Known)
	mine := c.mine
	mine.Horizon = c.horizon.known
	leased := c.Now() < l.LeaseUntil
	for now := max(c.Now(), c.latest.Mtime); ; {
		cl, stamp, err := c.writeLoss(ctx, l, mine, now, leased)
		//mutant:c21-loss-freezes-nothing -> if _ = stamp; true {
		if err != nil || stamp == 0 || cl.FrozenUntil >= mine.lastLease(stamp) {
			c.saw(cl)
			if err == nil && cl.UUID != "" {
				c.Trace.Step("loss", "known", l.Known, "inc", cl.Incarnation, "frozen", cl.FrozenUntil, "now", now)
			}
			return cl, err
		}
		// Our clock is far behind the leader's, so that the freeze ends too early. Write it again, from the leader's
		// time on, whether or not our lease runs. The incarnation grows once more, which does no harm: only the order
		// of incarnations counts.
		l.Known, now = cl.Incarnation, stamp
	}
}

// writeLoss writes what Loss.after returns. stamp is the leader's time of that write, 0 if there was nothing to write.
func (c *Coordinator) writeLoss(ctx context.Context, l Loss, mine Cluster, now int64, leased bool) (
	_ Cluster, stamp int64, _ error,
) {
	for created := false; ; {
		found, stat, err := findCluster(ctx, c.Store)
		if err != nil {
			return Cluster{}, 0, err
		}
		next, ok := l.after(found, mine, now, leased)
		switch {
		case ok && found == nil:
			err = create(ctx, c.Store, clusterPath, next.marshal(), store.Persistent)
			created = err == nil // now read its stamp
		case ok:
			if stat, err = c.Store.Set(ctx, clusterPath, next.marshal(), stat.Version); err == nil {
				return next, stat.Mtime, nil
			}
		case found != nil && found.UUID == mine.UUID && created:
			return *found, stat.Mtime, nil
		case found != nil && found.UUID == mine.UUID:
			return *found, 0, nil
		case found != nil && l.MayRecreate:
			return Cluster{}, 0, fmt.Errorf("%w: a confirmed cluster has replaced this node's", store.ErrBadVersion)
		default:
			return Cluster{}, 0, nil
		}
		if err != nil && !outpaced(err) {
			return Cluster{}, 0, err
		} // else another write was faster: read the record again
	}
}

// saw takes over what a cluster's record says of the incarnation and the horizon.
func (c *Coordinator) saw(cl Cluster) {
	if cl.UUID != c.mine.UUID {
		return
	}
	c.mine.HighestSlot = max(c.mine.HighestSlot, cl.HighestSlot)
	c.horizon = c.horizon.saw(cl.Horizon, c.Elapsed.AtLeast())
	if cl.Incarnation > c.mine.Incarnation {
		c.mine.Incarnation = cl.Incarnation
		if c.hold != nil {
			// In the confirming time from now, nodes put back what they know.
			c.hold.Heard, c.hold.hearing = Chain{}, Hearing{}
		}
	}
}

// Note keeps a finding for the next call that can write it: WriteNoted, Heartbeat, Register or Resume.
func (c *Coordinator) Note(l Loss) {
	if c.noted == nil || l.Known > c.noted.Known {
		c.noted = &l
	}
}

// WriteNoted writes the finding that this node has noted. The node must not Join another cluster before.
func (c *Coordinator) WriteNoted(ctx context.Context) error {
	if c.noted == nil {
		return nil
	}
	// ErrBadVersion: a node has confirmed in a cluster that took the place of ours, so there is nothing left to freeze.
	if _, err := c.raise(ctx, *c.noted); err != nil && !errors.Is(err, store.ErrBadVersion) {
		return err
	}
	c.noted = nil
	return nil
}

// Forgive drops the finding that this node has noted. It is for a node whose state directory was last used with another
// ZooKeeper: this one may never have had the node's record.
func (c *Coordinator) Forgive() { c.noted = nil }

// PutClusterBack recreates, frozen, the cluster record that ZooKeeper has lost. It is for a node that knows the cluster
// from its state directory and has no lease.
func (h *Hold) PutClusterBack(ctx context.Context) (Cluster, error) {
	l := h.lossOf(nil, "ZooKeeper has lost the cluster record")
	l.MayRecreate = true
	cl, err := h.co.raise(ctx, l)
	if err == nil {
		err = h.co.replaceLost(ctx, cl)
	}
	return cl, err
}
