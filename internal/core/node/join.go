package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// joinCluster reads the cluster record, or creates it if Config.Bootstrap allows that. It checks the record against
// this node's settings and against the cluster of its state directory. lost reports that ZooKeeper has lost the cluster
// of the claim, or that this is another ZooKeeper (a.otherZK).
func (n *Node) joinCluster(ctx context.Context, a *attempt) (lost bool, err error) {
	mine := n.peek().cluster
	cl, err := n.readCluster(ctx, mine, a)
	if !errors.Is(err, store.ErrUnreachable) {
		n.keeper.answered = n.mono()
	}
	if errors.Is(err, coordinator.ErrNoCluster) {
		if err := n.mayMakeCluster(err, mine, a); err != nil {
			return false, err
		}
		if a.cached && n.leased() {
			return true, nil
		}
		cl, err = n.makeCluster(ctx, mine)
	}
	if err != nil {
		return false, err
	}
	switch _, ours := n.Cluster(); {
	//mutant:c32-any-cluster by TestRunningNodeJoinsNoOtherCluster -> case false:
	case !a.usable && ours != "" && ours != cl.UUID: // clients do not look again which cluster answers (C32)
		return false, &coordinator.OtherClusterError{Found: cl.UUID, Ours: ours}
	case !a.usable:
		return false, n.joinAs(cl)
	}
	finding := coordinator.ClusterFinding(&cl, mine.UUID, n.coord.Claim().Incarnation)
	switch {
	case finding == coordinator.FoundLost && (a.otherZK || a.cached):
		return true, nil
	case finding != coordinator.FoundOurs && cl.UUID != mine.UUID:
		n.unconfirm() // the lease counts in its own cluster only (C16)
		a.cached = false
		return false, &StateOfOtherClusterError{Ours: mine.UUID, Found: cl.UUID}
	}
	return false, n.joinAs(cl)
}

// readCluster reads the cluster record. For a new node, the record of a server that lags
// behind will do: the write of a slot fails if the record has changed. Only if that record
// would keep the new node from registering is it read again after a sync.
func (n *Node) readCluster(ctx context.Context, mine coordinator.Cluster, a *attempt) (coordinator.Cluster, error) {
	if !a.usable {
		cl, err := coordinator.PeekCluster(ctx, n.cfg.Store)
		if err == nil && (mine.UUID == "" || mine.UUID == cl.UUID) && n.now() >= cl.FrozenUntil {
			return cl, nil
		}
		if err != nil && !errors.Is(err, coordinator.ErrNoCluster) {
			return cl, err
		}
	}
	return coordinator.ReadCluster(ctx, n.cfg.Store)
}

// mayMakeCluster returns nil if this node may create the cluster record, or put it back, in a
// ZooKeeper that has none. why is the error of the read that did not find it.
func (n *Node) mayMakeCluster(why error, mine coordinator.Cluster, a *attempt) error {
	switch {
	case a.otherZK:
		return n.otherZooKeeper()
	case !n.cfg.Bootstrap && mine.UUID != "":
		return &LostClusterError{n.cfg.Cluster, why}
	case !n.cfg.Bootstrap:
		return fmt.Errorf("%w (name %q)", why, n.cfg.Cluster)
	case mine.UUID != "":
		return n.cfg.Settings.Agree(mine)
	}
	return nil
}

// makeCluster creates the cluster record in a ZooKeeper that has none. If the state directory
// names a cluster, ZooKeeper has lost that cluster, and its nodes may still hold leases. Then
// makeCluster puts it back, with registration frozen until all those leases have ended.
func (n *Node) makeCluster(ctx context.Context, mine coordinator.Cluster) (coordinator.Cluster, error) {
	if mine.UUID != "" { // put back only where the directory names it (C22)
		cl, err := n.coord.PutClusterBack(ctx)
		if err == nil {
			n.log.Error(
				"restored the cluster record that ZooKeeper lost and froze registration until all leases have expired",
				"cluster", cl.UUID, "until", time.UnixMilli(cl.FrozenUntil).UTC())
		}
		return cl, err
	}
	want, err := n.cfg.Settings.Record(n.cfg.Identity(), n.cfg.Heartbeat)
	if err == nil {
		_, err = n.cfg.fits(want) // no node could join a cluster that this one does not fit, and its settings stay
	}
	if err != nil {
		return coordinator.Cluster{}, err
	}
	return coordinator.CreateCluster(ctx, n.cfg.Store, want, n.now())
}

func (n *Node) otherZooKeeper() error {
	return &OtherZooKeeperError{State: n.peek().store.address, Given: n.cfg.ZooKeeper}
}

// unconfirm changes the local record so that the node no longer starts without ZooKeeper. Another cluster has confirmed
// in the place of the node's own, which ends the leases of its own. The record still names its own cluster. So the next
// start refuses too, and does not join the other cluster unasked. If the node finds its own cluster again, it resumes.
func (n *Node) unconfirm() {
	if err := n.coord.Unconfirm(); err != nil {
		n.log.Error("could not write the state directory, which still has a lease that is no longer valid",
			"error", err)
	}
}

// joinAs makes a cluster this node's own, or returns why the node's settings do not fit it.
func (n *Node) joinAs(cl coordinator.Cluster) error {
	r, err := n.cfg.fits(cl)
	if err != nil {
		return err
	}
	if time.Until(r.layout.Expires()) < 5*365*24*time.Hour {
		n.log.Warn("the layout's time field runs out within five years", "at", r.layout.Expires())
	}
	n.join(cl, r)
	return nil
}

// adoptCluster makes the cluster of a local record the node's own, if the record names one. It
// returns an error if this node cannot make IDs by the cluster's rules.
func (n *Node) adoptCluster(cl coordinator.Cluster) error {
	if cl.UUID == "" {
		return nil
	}
	rules, err := n.cfg.rulesOf(cl)
	if err != nil {
		return err
	}
	n.join(cl, rules)
	return nil
}

// join makes a cluster the node's own, with the rules given.
func (n *Node) join(cl coordinator.Cluster, r rules) {
	n.coord.Join(cl)
	cl.HighestSlot = n.coord.HighestSlot()
	if notice, err := limits.NoticeWithin(ms(cl.ConfirmMs), n.cfg.Heartbeat); err == nil {
		//mutant:c12-slow-reconnect by sim -> _ = notice
		n.cfg.Store.Hurry(notice) // a loss is noticed within the confirming time (C12)
	}
	n.clock.SetCoast(r.onRollback.Coast())
	n.mu.Lock()
	n.cluster, n.rules = cl, r
	n.mu.Unlock()
}

// fits returns the rules of a cluster, or why this node's settings do not fit the cluster.
func (c Config) fits(cl coordinator.Cluster) (rules, error) {
	if err := c.Settings.Agree(cl); err != nil {
		return rules{}, err
	}
	if err := c.checkHeartbeat(cl); err != nil {
		return rules{}, err
	}
	r, err := c.rulesOf(cl)
	if err != nil {
		return r, err
	}
	if r.layout.Unit > c.Reserve/3 {
		return r, &ValueError{SettingLayout, fmt.Errorf("ticks of %s are too long for nodes, which reserve %s: a tick "+
			"must be %s or shorter. Create a cluster with another layout", r.layout.Unit, c.Reserve, c.Reserve/3)}
	}
	return r, nil
}

// checkHeartbeat returns a *RangeError if the heartbeat is too slow for a cluster. A holder
// must notice a loss of ZooKeeper's data within the confirming time, and must report twice within
// the shortest lease. A confirming time of 0 is allowed for a store in memory.
func (c Config) checkHeartbeat(cl coordinator.Cluster) error {
	confirm := ms(cl.ConfirmMs)
	_, err := limits.NoticeWithin(confirm, c.Heartbeat)
	if err != nil && !(confirm == 0 && c.InMemory) { // a loss must be noticed in time (C12)
		most := limits.MaxHeartbeat(confirm)
		if most < limits.MinHeartbeat {
			return &RangeError{Setting: SettingConfirmTime, Least: limits.MinConfirm, Problem: fmt.Sprintf(
				"the confirming time %s is too short for any heartbeat interval: %v", confirm, err)}
		}
		return &RangeError{Setting: SettingHeartbeat, Most: most, Problem: fmt.Sprintf(
			"the heartbeat interval %s is too long for the confirming time %s: %v", c.Heartbeat, confirm, err)}
	}
	if lease := timeguard.Lease(ms(cl.LeaseMs), 0); lease < 2*c.Heartbeat {
		return &RangeError{Setting: SettingHeartbeat, Most: lease / 2, Problem: fmt.Sprintf(
			"the heartbeat interval %s is too long: a node starts with a lease of %s, which must cover two heartbeats",
			c.Heartbeat, lease)}
	}
	return nil
}

// Fits returns why a node of this configuration cannot join a cluster, nil if it can. It reads
// only Settings, Heartbeat, Reserve and InMemory, and fills in no defaults.
func (c Config) Fits(cl coordinator.Cluster) error {
	_, err := c.fits(cl)
	return err
}
