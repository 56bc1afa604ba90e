package node

import (
	"slices"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/localcache"
)

// ledger stores claims on the local disk for the coordinator.
type ledger struct{ n *Node }

var _ coordinator.Ledger = ledger{}

// Save makes a claim the node's own once it is durable. A claim on another slot
// brings its own reserved bound; on the same one the bound stays what it is.
func (l ledger) Save(claim coordinator.Claim) (uint64, error) {
	n := l.n
	n.saveMu.Lock()
	defer n.saveMu.Unlock()
	n.mu.Lock()
	rec := n.record(claim)
	n.mu.Unlock()
	gen, err := n.save(rec)
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claim, n.m, n.generation = claim, rec.M, gen
	return gen, nil
}

// record is the local record of a claim, not stopped. mu is held.
func (n *Node) record(c coordinator.Claim) localcache.Record {
	m := n.m
	if c.Node != n.claim.Node || c.Worker != n.claim.Worker {
		m = c.M
	}
	m = max(m, c.Lo) // a restart begins at M: never below the floor of a claim
	return localcache.Record{
		ClusterName: n.cfg.Cluster, ClusterUUID: n.cluster.UUID, ZooKeeper: n.zookeeper,
		EpochMs: n.layout.Epoch, Layout: n.cluster.Layout, DatacenterID: int(n.cluster.Datacenter),
		LeaseMaxMs: n.cluster.LeaseMs, SettleMs: n.cluster.SettleMs, Used: n.cluster.Used,
		OnRollback: n.cluster.OnRollback, BorrowMs: n.cluster.BorrowMs,
		Node: c.Node, Ticket: c.Ticket, Worker: c.Worker,
		Term: c.Term, Nonce: c.Nonce, Incarnation: c.Incarnation, PendingTerm: c.PendingTerm, PendingNonce: c.PendingNonce,
		Settled: c.Settled, Lo: c.Lo, M: m, H: c.H,
		ServedMs: n.served.Milliseconds(), Rotations: slices.Clone(n.rotations),
	}
}

// adoptCluster makes the cluster of a local record the node's.
func (n *Node) adoptCluster(rec localcache.Record) error {
	cl := coordinator.Cluster{
		UUID: rec.ClusterUUID, Incarnation: rec.Incarnation, Layout: rec.Layout, Datacenter: int64(rec.DatacenterID),
		LeaseMs: rec.LeaseMaxMs, SettleMs: rec.SettleMs, Used: rec.Used,
		OnRollback: rec.OnRollback, BorrowMs: rec.BorrowMs,
	}
	if cl.UUID == "" {
		return nil
	}
	rules, err := n.rulesOf(cl)
	if err != nil {
		return err
	}
	cl.Slots = Slots(rules.layout)
	n.join(cl, rules)
	return nil
}

// adopt makes the claim of a local record the node's.
func (n *Node) adopt(rec localcache.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.m, n.generation = rec.M, rec.Generation
	n.served, n.rotations = ms(rec.ServedMs), rec.Rotations
	n.claim = coordinator.Claim{
		Node: rec.Node, Ticket: rec.Ticket, Worker: rec.Worker,
		Term: rec.Term, Nonce: rec.Nonce, Incarnation: rec.Incarnation, PendingTerm: rec.PendingTerm, PendingNonce: rec.PendingNonce,
		Settled: rec.Settled, Lo: rec.Lo, H: rec.H, M: rec.M, Generation: rec.Generation,
	}
}

// join makes a cluster the node's.
func (n *Node) join(cl coordinator.Cluster, r rules) {
	n.coord.Join(cl)
	cl.Used = n.coord.Used()
	if notice, err := limits.NoticeWithin(ms(cl.SettleMs), n.cfg.Heartbeat); err == nil {
		n.cfg.Store.Hurry(notice)
	}
	n.clock.SetCoast(r.onRollback.Coast())
	n.mu.Lock()
	n.cluster, n.rules = cl, r
	n.mu.Unlock()
}
