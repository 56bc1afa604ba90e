package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
)

// OtherClusterError: the state directory belongs to another cluster.
type OtherClusterError struct{ Ours, Found string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("node: the state directory belongs to cluster %s, and this is %s: give this cluster a --state-dir of its own, or point --zk and --cluster at the one it belongs to", e.Ours, e.Found)
}

// joinCluster reads the cluster record, or makes it if that was asked for, and
// checks it against what this node wants and belongs to. lost tells that the
// cluster this node belongs to has vanished from ZooKeeper.
func (n *Node) joinCluster(ctx context.Context, a *attempt) (lost bool, err error) {
	n.mu.Lock()
	mine := n.cluster
	n.mu.Unlock()
	cl, err := coordinator.ReadCluster(ctx, n.cfg.Store)
	missing := errors.Is(err, coordinator.ErrNoCluster)
	switch {
	case missing && !n.cfg.Bootstrap:
		return false, fmt.Errorf("%w by the name %q", err, n.cfg.Cluster)
	case missing && a.cached && n.now() < a.claim.H:
		return true, nil
	case missing:
		// Whatever the local record names is gone, and its lease has ended.
		*a = n.newcomer()
		want, err := n.cfg.Settings.Record(n.cfg.Identity(), n.cfg.Heartbeat)
		if err == nil {
			err = n.checkHeartbeat(want)
		}
		if err != nil {
			return false, err
		}
		if cl, err = coordinator.CreateCluster(ctx, n.cfg.Store, want); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	}
	if a.usable {
		switch coordinator.JudgeCluster(&cl, mine.UUID) {
		case coordinator.FoundLost:
			if a.cached {
				return true, nil
			}
			fallthrough
		case coordinator.FoundFenced:
			n.unsettle()
			return false, &OtherClusterError{Ours: mine.UUID, Found: cl.UUID}
		}
	}
	return false, n.joinAs(cl)
}

// unsettle has the local record not start without ZooKeeper any more: another
// cluster has settled in the place of its own, which ends the leases of that.
// It goes on naming its cluster, so that the node refuses again and does not
// join the other one unasked; where its own is found again, it resumes.
func (n *Node) unsettle() {
	n.mu.Lock()
	claim := n.claim
	n.mu.Unlock()
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
		return r, fmt.Errorf("node: with a tick of %s the bound on the disk has to be kept further ahead: --reserve %s or more", r.layout.Unit, 3*r.layout.Unit)
	}
	return r, nil
}

// checkHeartbeat refuses one that is too slow for an owner to come back within
// the settling time.
func (n *Node) checkHeartbeat(cl coordinator.Cluster) error {
	if settle := ms(cl.SettleMs); 2*n.cfg.Heartbeat > settle && settle > 0 {
		return fmt.Errorf("node: a heartbeat every %s is too slow for a cluster that settles in %s: give --heartbeat %s or less", n.cfg.Heartbeat, settle, settle/2)
	}
	if lease := timeguard.Lease(ms(cl.LeaseMs), 0); lease < 2*n.cfg.Heartbeat {
		return fmt.Errorf("node: a heartbeat every %s is too slow for a lease that begins with %s: give --heartbeat %s or less", n.cfg.Heartbeat, lease, lease/2)
	}
	return nil
}
