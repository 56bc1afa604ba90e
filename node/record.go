package node

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/localcache"
)

// LocalRecord is what a node keeps of itself in its state directory.
type LocalRecord struct {
	// ClusterName is the label that the cluster goes by. Its identity is Cluster.UUID.
	ClusterName string `json:"cluster_name"`
	// ZooKeeper is where the cluster's records are: servers and chroot.
	ZooKeeper string              `json:"zookeeper,omitempty"`
	Cluster   coordinator.Cluster `json:"cluster"`
	Claim     coordinator.Claim   `json:"claim"`
	// Stopped: the last run ended cleanly and Claim.M is exact, not ahead.
	Stopped bool `json:"stopped,omitempty"`
	// ServedMs is how long this node has served, over restarts, ms. It sets the
	// length of its leases.
	ServedMs int64 `json:"-"`
	// Rotations are the times at which fresh slots were taken after the clock went
	// back, Unix ms. There are maxRotations at most, so that the record stays small.
	Rotations []int64 `json:"rotations,omitempty"`
}

// Encode returns the record as the state directory keeps it. What changes with every
// heartbeat is beside the payload, as localcache wants it.
func (r LocalRecord) Encode() (localcache.Record, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return localcache.Record{}, fmt.Errorf("node: encode the local record: %w", err)
	}
	return localcache.Record{M: r.Claim.M, H: r.Claim.H, ServedMs: r.ServedMs, Payload: payload}, nil
}

// DecodeRecord returns the local record that a state directory keeps, the zero one
// where it keeps none.
func DecodeRecord(kept localcache.Record) (r LocalRecord, err error) {
	if kept.Payload != nil {
		err = json.Unmarshal(kept.Payload, &r)
	}
	if err != nil {
		return LocalRecord{}, fmt.Errorf("node: the record in the state directory is not one of a node: %w", err)
	}
	r.Claim.M, r.Claim.H, r.Claim.Generation, r.ServedMs = kept.M, kept.H, kept.Generation, kept.ServedMs
	return r, nil
}

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
	n.claim, n.m, n.generation = claim, rec.Claim.M, gen
	return gen, nil
}

// record returns the local record of a claim, not stopped. mu is held.
func (n *Node) record(c coordinator.Claim) LocalRecord {
	m := n.m
	if c.Node != n.claim.Node || c.Worker != n.claim.Worker {
		m = c.M
	}
	m = max(m, c.Lo) // a restart begins at M: never below the floor of a claim
	c.M = m
	return LocalRecord{
		ClusterName: n.cfg.Cluster, ZooKeeper: n.store.address, Cluster: kept(n.cluster, c), Claim: c,
		ServedMs: n.served.Milliseconds(), Rotations: slices.Clone(n.rotations),
	}
}

// kept returns what a node keeps of its cluster's record: its settings, and the
// incarnation that the claim was last acknowledged in. Only ZooKeeper can say whether
// the cluster is settled and whether it is frozen.
func kept(cl coordinator.Cluster, c coordinator.Claim) coordinator.Cluster {
	cl.Incarnation, cl.Settled = c.Incarnation, false
	cl.FrozenUntil, cl.Open, cl.FrozenBy = 0, "", ""
	return cl
}

// adoptCluster makes the cluster of a local record the node's.
func (n *Node) adoptCluster(cl coordinator.Cluster) error {
	if cl.UUID == "" {
		return nil
	}
	rules, err := n.rulesOf(cl)
	if err != nil {
		return err
	}
	n.join(cl, rules)
	return nil
}

// adopt makes the claim of a local record the node's.
func (n *Node) adopt(rec LocalRecord) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claim, n.m, n.generation = rec.Claim, rec.Claim.M, rec.Claim.Generation
	n.served, n.rotations = ms(rec.ServedMs), rec.Rotations
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
