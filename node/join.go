package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/zkstore"
)

// joinCluster reads the cluster record, or makes it if that was asked for, and
// checks it against what this node wants and belongs to. lost says that the
// cluster this node belongs to has vanished from ZooKeeper.
func (n *Node) joinCluster(ctx context.Context, a *attempt) (lost bool, err error) {
	mine := n.peek().cluster
	cl, err := n.readCluster(ctx, mine, a)
	if !errors.Is(err, zkstore.ErrUnreachable) {
		n.keeper.heard = n.mono()
	}
	if errors.Is(err, coordinator.ErrNoCluster) {
		if err := n.mayMakeCluster(err, mine, a); err != nil {
			return false, err
		}
		if a.cached && n.now() < a.claim.H {
			return true, nil
		}
		cl, err = n.makeCluster(ctx, mine, a)
	}
	if err != nil {
		return false, err
	}
	if !a.usable {
		return false, n.joinAs(cl)
	}
	finding := coordinator.JudgeCluster(&cl, mine.UUID, a.claim.Incarnation)
	switch {
	case finding == coordinator.FoundLost && a.moved:
		return false, n.otherZooKeeper()
	case finding == coordinator.FoundLost && a.cached:
		return true, nil
	case finding != coordinator.FoundOurs && cl.UUID != mine.UUID:
		n.unsettle()
		return false, &OtherClusterError{Ours: mine.UUID, Found: cl.UUID}
	}
	return false, n.joinAs(cl)
}

// readCluster reads the cluster record. A newcomer takes the word of the server that it
// asks, which may lag behind: what it writes next is checked by all. Only where that would
// keep it from registering is the record read as all servers have it.
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

// mayMakeCluster refuses to make or put back the cluster's record in a ZooKeeper
// that has none. why is what the caller found.
func (n *Node) mayMakeCluster(why error, mine coordinator.Cluster, a *attempt) error {
	switch {
	case a.moved:
		return n.otherZooKeeper()
	case !n.cfg.Bootstrap:
		return fmt.Errorf("%w by the name %q", why, n.cfg.Cluster)
	case mine.UUID != "":
		return n.cfg.Settings.Agree(mine)
	}
	return nil
}

// makeCluster makes the cluster record of a ZooKeeper that has none. A state directory
// that names a cluster shows that there was one, whose nodes may still live by their
// leases: it is put back, and registration is frozen until none of them can.
func (n *Node) makeCluster(ctx context.Context, mine coordinator.Cluster, a *attempt) (coordinator.Cluster, error) {
	if mine.UUID != "" {
		cl, err := n.coord.PutBack(ctx, a.claim)
		if err == nil {
			n.log.Error("ZooKeeper has lost this cluster: it was put back, and registration is frozen for as long as one of its nodes may live",
				"cluster", cl.UUID, "until", time.UnixMilli(cl.FrozenUntil).UTC())
		}
		return cl, err
	}
	want, err := n.cfg.Settings.Record(n.cfg.Identity(), n.cfg.Heartbeat)
	if err == nil {
		err = n.checkHeartbeat(want)
	}
	if err != nil {
		return coordinator.Cluster{}, err
	}
	return coordinator.CreateCluster(ctx, n.cfg.Store, want)
}

func (n *Node) otherZooKeeper() error {
	return &OtherZooKeeperError{State: n.peek().store.address, Given: n.cfg.ZooKeeper}
}

// unsettle has the local record not start without ZooKeeper any more: another
// cluster has settled in the place of its own, which ends the leases of that.
// It goes on naming its cluster, so that the node refuses again and does not
// join the other one unasked; where its own is found again, it resumes.
func (n *Node) unsettle() {
	claim := n.peek().claim
	claim.Settled, claim.H = false, 0
	if _, err := (ledger{n}).Save(claim); err != nil {
		n.log.Error("the state directory cannot be written, and still names a lease that has ended", "error", err)
	}
}

// joinAs takes a cluster as this node's if it can live by its settings.
func (n *Node) joinAs(cl coordinator.Cluster) error {
	r, err := n.fits(cl)
	if err != nil {
		return err
	}
	if time.Until(r.layout.Expires()) < 5*365*24*time.Hour {
		n.log.Warn("the layout's time field runs out within five years", "at", r.layout.Expires())
	}
	n.join(cl, r)
	return nil
}

// fits tells why this node cannot live by a cluster's settings.
func (n *Node) fits(cl coordinator.Cluster) (rules, error) {
	if err := n.cfg.Settings.Agree(cl); err != nil {
		return rules{}, err
	}
	if err := n.checkHeartbeat(cl); err != nil {
		return rules{}, err
	}
	r, err := n.rulesOf(cl)
	if err != nil {
		return r, err
	}
	if r.layout.Unit > n.cfg.Reserve/3 {
		return r, &RangeError{Setting: SettingReserve, Problem: fmt.Sprintf("a reserve of %s is too short for ticks of %s", n.cfg.Reserve, r.layout.Unit), Least: 3 * r.layout.Unit}
	}
	return r, nil
}

// checkHeartbeat refuses a heartbeat that is too slow for an owner to notice a loss
// of ZooKeeper's data within the settling time, or to renew its lease.
func (n *Node) checkHeartbeat(cl coordinator.Cluster) error {
	settle := ms(cl.SettleMs)
	if _, err := limits.NoticeWithin(settle, n.cfg.Heartbeat); err != nil && !(settle == 0 && n.cfg.InMemory) {
		if most := limits.MaxHeartbeat(settle); most >= limits.MinHeartbeat {
			return &RangeError{Setting: SettingHeartbeat, Problem: fmt.Sprintf("a heartbeat every %s is too slow for a cluster that settles in %s: %v", n.cfg.Heartbeat, settle, err), Most: most}
		}
		return &RangeError{Setting: SettingSettle, Problem: fmt.Sprintf("a settling time of %s is too short for any heartbeat: %v", settle, err), Least: limits.MinConfirm}
	}
	if lease := timeguard.Lease(ms(cl.LeaseMs), 0); lease < 2*n.cfg.Heartbeat {
		return &RangeError{Setting: SettingHeartbeat, Problem: fmt.Sprintf("a heartbeat every %s is too slow for a lease that begins with %s", n.cfg.Heartbeat, lease), Most: lease / 2}
	}
	return nil
}
