package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
)

// joinCluster reads the cluster record, or creates it if Config.Bootstrap allows that. It checks the record against
// the cluster of the state directory and this node's settings, and makes the cluster this node's own. lost reports that
// ZooKeeper has lost the cluster of the claim, or that this is another ZooKeeper (a.otherZK). If another cluster has
// taken the place of the claim's, joinCluster drops the lease on the disk and clears a.mayStartAlone.
func (k *keeper) joinCluster(ctx context.Context, a *attempt) (lost bool, err error) {
	mine := k.view.Load().Cluster
	cl, err := coordinator.ReadCluster(ctx, k.cfg.Store)
	if !errors.Is(err, store.ErrUnreachable) {
		a.answered = k.monotonic()
	}
	if errors.Is(err, coordinator.ErrNoCluster) {
		if err := k.mayMakeCluster(err, mine, a); err != nil {
			return false, err
		}
		if k.mayGoAlone(a) {
			return true, nil
		}
		cl, err = k.makeCluster(ctx, mine)
	}
	if err != nil {
		return false, err
	}
	_, announced := k.Cluster()
	finding := coordinator.ClusterFinding(&cl, mine.UUID, k.coord.Claim().Incarnation)
	switch {
	//mutant:c32-any-cluster by TestRunningNodeJoinsNoOtherCluster -> case false:
	case !a.usable && announced != "" && announced != cl.UUID: // clients do not look again which cluster answers (C32)
		return false, &coordinator.OtherClusterError{Found: cl.UUID, Ours: announced}
	case !a.usable: // a new node joins the cluster that it finds
	case finding == coordinator.FoundLost && (a.otherZK || a.mayStartAlone):
		return true, nil
	case finding != coordinator.FoundOurs && cl.UUID != mine.UUID:
		k.dropLease() // the lease counts in its own cluster only (C16)
		a.mayStartAlone = false
		return false, &StateOfOtherClusterError{Ours: mine.UUID, Found: cl.UUID}
	}
	r, err := k.cfg.rulesIfFits(cl)
	if err != nil {
		return false, err
	}
	if time.Until(r.layout.Expires()) < 5*365*24*time.Hour {
		k.log.Warn("the layout's time field runs out within five years", "at", r.layout.Expires())
	}
	k.adopt(cl, r)
	return false, nil
}

// mayMakeCluster returns nil if this node may create the cluster record, or restore it, in a
// ZooKeeper that has none. why is the error of the read that did not find it.
func (k *keeper) mayMakeCluster(why error, mine coordinator.Cluster, a *attempt) error {
	switch {
	case a.otherZK:
		return k.otherZooKeeper()
	case !k.cfg.Bootstrap && mine.UUID != "":
		return &LostClusterError{k.cfg.Cluster, why}
	case !k.cfg.Bootstrap:
		return fmt.Errorf("%w (name %q)", why, k.cfg.Cluster)
	case mine.UUID != "":
		return k.cfg.Settings.Agree(mine)
	}
	return nil
}

// makeCluster creates the cluster record in a ZooKeeper that has none. If the state directory
// names a cluster, ZooKeeper has lost that cluster, and its nodes may still hold leases. Then
// makeCluster restores it, with registration frozen until all those leases have ended.
func (k *keeper) makeCluster(ctx context.Context, mine coordinator.Cluster) (coordinator.Cluster, error) {
	if mine.UUID != "" { // restored only where the directory names it (C22)
		cl, err := k.coord.RestoreCluster(ctx)
		if err == nil {
			k.log.Error(
				"restored the cluster record that ZooKeeper lost and froze registration until all leases have expired",
				"cluster", cl.UUID, "until", time.UnixMilli(cl.FrozenUntil).UTC())
		}
		return cl, err
	}
	want, err := k.cfg.Settings.Record(k.cfg.Identity(), k.cfg.Heartbeat)
	if err == nil {
		_, err = k.cfg.rulesIfFits(want) // no node could join a cluster that this one does not fit, and its settings stay
	}
	if err != nil {
		return coordinator.Cluster{}, err
	}
	return coordinator.CreateCluster(ctx, k.cfg.Store, want, k.now())
}

func (k *keeper) otherZooKeeper() error {
	return &OtherZooKeeperError{State: k.peek().reports.address, Given: k.cfg.ZooKeeper}
}

// dropLease changes the local record so that the node no longer starts without ZooKeeper. Another cluster has taken the
// place of the node's own. If a node has confirmed a worker there, the leases of the node's own cluster have ended.
// Otherwise this node has never confirmed a worker. The local record still names the node's own cluster. So the next start refuses too, and does not
// join the other cluster unasked. If the node finds its own cluster again, it resumes.
func (k *keeper) dropLease() {
	if err := k.coord.Unconfirm(); err != nil {
		k.log.Error("could not write the state directory, which still has a lease that is no longer valid",
			"error", err)
	}
}

// adopt makes a cluster the node's own, with the rules given.
func (k *keeper) adopt(cl coordinator.Cluster, r rules) {
	k.coord.Join(cl)
	if notice, err := limits.NoticeWithin(ms(cl.ConfirmMs), k.cfg.Heartbeat); err == nil {
		//mutant:c12-slow-reconnect by sim -> _ = notice
		k.cfg.Store.SetNotice(notice) // a loss is noticed within the confirming time (C12)
	}
	k.clock.SetCoast(r.onRollback.Coast())
	k.mu.Lock()
	k.rules = r
	k.view.Store(k.coord.View())
	k.mu.Unlock()
}
