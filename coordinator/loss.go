package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/store"
)

// Loss says that ZooKeeper has lost data, or has older data than the node that noticed it, the finder, knows.
// Coordinator.announce writes it, whichever part of the node has noticed it.
type Loss struct {
	// Known is the incarnation that the finder knew.
	Known int64
	// MayRestoreCluster: the finder restores its cluster where the record is missing, or in the place of another one
	// in which no node has confirmed (C22). It has confirmed a worker, or RestoreCluster was called.
	MayRestoreCluster bool
	// LeaseUntil is the finder's lease bound, Unix ms. 0: it has no lease, or that has ended by the boot clock.
	LeaseUntil int64
	// Found says what shows the loss.
	Found string
}

// lossOf returns the Loss that the holder has noticed. cl is the cluster's record that was read with what shows the
// loss, nil if it is missing. If the holder's own record is lost or older, the loss came after the incarnation in which
// the holder last wrote it. Another node may have raised the incarnation for that loss already, so Known is that of the
// claim. If the cluster's record is lost or older itself, Known is the highest incarnation that the holder knew.
func (c *Coordinator) lossOf(h *holderState, cl *Cluster, found string) Loss {
	l := c.lossBy(h.Claim, h.Incarnation, found)
	if cl == nil || cl.Incarnation < c.mine.Incarnation {
		l.Known = max(l.Known, c.mine.Incarnation)
	}
	return l
}

// lossBy returns the Loss that a node with a claim has noticed, which knew an incarnation.
func (c *Coordinator) lossBy(claim Claim, known int64, found string) Loss {
	l := Loss{Known: known, MayRestoreCluster: claim.EverConfirmed, LeaseUntil: claim.LeaseUntil, Found: found}
	if claim.endedByBoot(c.Elapsed.Now().Boot) {
		l.LeaseUntil = 0
	}
	return l
}

// nextCluster returns the cluster's record that a finder writes, or ok = false if it must write none. found is the
// record in ZooKeeper, nil if there is none, mine the cluster as the finder knows it, and now the later of its clock
// and the leader's, Unix ms. leased: the finder's lease runs.
//
// The incarnation grows, unless it has since the finder knew it (C20). Registration is frozen (C21) until no holder can
// have a lease any more: until each horizon that the finder knows. All slots are frozen, because the cluster may have
// grown while the finder was cut off. Where another finder has raised the incarnation, a finder whose lease runs only
// makes the freeze longer if that would end too early: older data can bring back an older freeze.
func (l Loss) nextCluster(found *Cluster, mine Cluster, now int64, leased bool) (next Cluster, ok bool) {
	next = mine
	//mutant:c20-loss-raises-no-incarnation by sim -> next.InUse, next.Incarnation = leased, l.Known
	next.InUse, next.Incarnation = leased, l.Known+1
	if found == nil || found.UUID != mine.UUID {
		// Only a finder that has confirmed puts its cluster there (C22).
		empty := found == nil || !found.InUse
		next.FrozenUntil, next.FrozenBy = 0, ""
		//mutant:c21-loss-freezes-nothing by sim -> next.Horizon = next.nextHorizon(now)
		next = next.Freeze(now)
		//mutant:c22-newcomer-puts-a-cluster-back by TestUnconfirmedNodeDoesNotRecreateTheCluster -> return next, empty
		return next, empty && l.MayRestoreCluster
	}
	raised := found.Incarnation > l.Known
	if raised && (!leased || found.FrozenUntil >= mine.FreezeEnd(now)) {
		return *found, false
	}
	next.InUse = next.InUse || found.InUse
	next.HighestSlot = max(found.HighestSlot, mine.HighestSlot)
	next.Horizon, next.FrozenUntil, next.FrozenBy = max(found.Horizon, mine.Horizon), found.FrozenUntil, ""
	//mutant:c21-loss-freezes-nothing -> next.Horizon = next.nextHorizon(now)
	next = next.Freeze(now)
	if raised {
		next.Incarnation, next.FrozenBy = found.Incarnation, found.FrozenBy
	}
	return next, true
}

// announce makes a loss of data known to the whole cluster: it raises the incarnation and freezes registration. It
// returns the cluster's record as it is then. If that is missing or another cluster's, and l.MayRestoreCluster is not
// set, it returns the zero Cluster. If l.MayRestoreCluster is set, and a node has confirmed in the other cluster, the
// error is store.ErrBadVersion.
func (c *Coordinator) announce(ctx context.Context, l Loss) (Cluster, error) {
	if l != c.logged { // else a call announced it that failed
		c.logged = l
		c.Logger.Error("found that ZooKeeper has lost data, freezing registration", "found", l.Found,
			"incarnation", l.Known)
	}
	mine := c.ownCluster()
	leased := c.Now() < l.LeaseUntil
	for now := max(c.Now(), c.lastWrite.Mtime); ; {
		cl, stamp, err := c.writeLoss(ctx, l, mine, now, leased)
		//mutant:c21-own-freeze-ends-early by TestOwnFreezeIsLongByTheLeadersClock -> long := cl.FrozenUntil >= mine.FreezeEnd(stamp)-1
		long := cl.FrozenUntil >= mine.FreezeEnd(stamp)
		//mutant:c21-loss-freezes-nothing -> if _ = long; true {
		if err != nil || stamp == 0 || long {
			c.noteCluster(cl)
			if err == nil && cl.UUID != "" {
				c.Trace.Step("loss", "known", l.Known, "inc", cl.Incarnation, "frozen", cl.FrozenUntil, "now", now,
					"must", leased || stamp != 0)
			}
			return cl, err
		}
		// Our clock is far behind the leader's, so that the freeze ends too early. Write it again, from the leader's
		// time on, whether or not our lease runs. The incarnation grows once more, which does no harm: only the order
		// of incarnations counts.
		l.Known, now = cl.Incarnation, stamp
	}
}

// ownCluster returns the cluster's record as this node knows it.
func (c *Coordinator) ownCluster() Cluster {
	mine := c.mine
	mine.Horizon = c.horizon.known
	return mine
}

// writeLoss writes what Loss.nextCluster returns. stamp is the leader's time of that write, 0 if there was nothing to
// write.
func (c *Coordinator) writeLoss(ctx context.Context, l Loss, mine Cluster, now int64, leased bool) (
	_ Cluster, stamp int64, _ error,
) {
	for created := false; ; {
		found, stat, err := findCluster(ctx, c.Store)
		if err != nil {
			return Cluster{}, 0, err
		}
		next, ok := l.nextCluster(found, mine, now, leased)
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
		case found != nil && l.MayRestoreCluster:
			return Cluster{}, 0, fmt.Errorf("%w: a confirmed cluster has replaced this node's", store.ErrBadVersion)
		default:
			return Cluster{}, 0, nil
		}
		if err != nil && !mustReread(err) {
			return Cluster{}, 0, err
		} // else another write was faster: read the record again
	}
}

// AnnounceFound keeps a loss that another part of the node has found, as announceLater does. known is the incarnation
// that the finder knew, and claim the node's claim at that time.
func (c *Coordinator) AnnounceFound(known int64, found string, claim Claim) {
	c.announceLater(c.lossBy(claim, known, found))
}

// announceLater keeps a loss until the next call of AnnounceDue, Heartbeat, Register or Resume, which announces it.
func (c *Coordinator) announceLater(l Loss) {
	if c.unannounced == nil || l.Known > c.unannounced.Known {
		c.unannounced = &l
	}
}

// AnnounceDue announces the loss that announceLater has kept, if any. The node must not Join another cluster before.
func (c *Coordinator) AnnounceDue(ctx context.Context) error {
	if c.unannounced == nil {
		return nil
	}
	// ErrBadVersion: a node has confirmed in a cluster that took the place of ours, so there is nothing left to freeze.
	if _, err := c.announce(ctx, *c.unannounced); err != nil && !errors.Is(err, store.ErrBadVersion) {
		return err
	}
	c.unannounced = nil
	return nil
}

// DropUnannounced drops the loss that announceLater has kept. It is for a node whose state directory was last used with
// another ZooKeeper: this one may never have had the node's record.
func (c *Coordinator) DropUnannounced() { c.unannounced = nil }

// RestoreCluster writes again, frozen, the cluster record that ZooKeeper has lost. It is for a node that knows the
// cluster from its state directory and has no lease.
func (c *Coordinator) RestoreCluster(ctx context.Context) (Cluster, error) {
	l := c.lossOf(c.holder, nil, "ZooKeeper has lost the cluster record")
	l.MayRestoreCluster = true
	cl, err := c.announce(ctx, l)
	if err == nil {
		err = c.createStandIns(ctx, cl)
	}
	return cl, err
}

// restore writes our record again after ZooKeeper has lost it, if the lease runs by all clocks (C24, C26). First it
// freezes registration, because new nodes may be about to confirm, and holders that are cut off may have leases that
// run (C21). why says how the loss was noticed.
func (c *Coordinator) restore(ctx context.Context, v recordPair, r Report, why string) (Beat, error) {
	h := c.holder
	leaseRuns := h.Leased(c.Now(), c.Elapsed.Now().Boot)
	l, mine := c.lossOf(h, v.cl, why), c.ownCluster()
	cl, err := c.announce(ctx, l)
	switch {
	case err != nil:
		return Beat{}, err
	case !h.EverConfirmed:
		return Beat{}, c.giveUpWithTicket(ctx, why+", and this node had not confirmed the worker", true)
	case !leaseRuns:
		return Beat{}, c.giveUpWithTicket(ctx, why+", and the lease has expired", true)
	}
	// Another holder may have frozen long ago. By the leader's clock now, check whether that freeze is long enough.
	e := c.gather(r.Agreed) // before the ticket: hasPassed asks how far our clock was ahead
	//mutant:c26-ticket-of-a-failed-restore by TestFailedRestoreKeepsTheReading -> clock, err := c.touchTicket(ctx, &h.Claim); c.reading = clock
	clock, err := c.touchTicket(ctx, &h.Claim)
	//mutant:c21-found-freeze-ends-early by TestFoundFreezeIsLongByTheLeadersClock -> early := cl.FrozenUntil < mine.FreezeEnd(clock.Stamp)-1
	early := cl.FrozenUntil < mine.FreezeEnd(clock.Stamp)
	if err == nil && early {
		cl, err = c.announce(ctx, l)
	}
	if err != nil {
		return Beat{}, err
	}
	// By our own clock the lease still runs, but that clock may have gone back.
	if h.expiry.state == expired || e.hasPassed(h.LeaseUntil, clock.Stamp) {
		return Beat{}, c.giveUpWithTicket(ctx, why+", and by ZooKeeper's clock the lease has expired", true)
	}
	beat, err := c.writeRestored(ctx, cl, v, r)
	if err != nil {
		return Beat{}, err
	}
	if err := c.createStandIns(ctx, cl); err != nil {
		c.Logger.Warn("could not replace the lost records of workers, new nodes may wait longer", "error", err)
	}
	return beat, nil
}
