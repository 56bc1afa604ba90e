package view

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/worker"
)

// ClusterReport is a cluster in the JSON of `cluster show` and of `status`. Times
// are Unix milliseconds.
type ClusterReport struct {
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	Layout     string `json:"layout"`
	Slots      int    `json:"slots"`
	Datacenter int64  `json:"datacenter"`
	LeaseMs    int64  `json:"lease_ms"`
	ConfirmMs  int64  `json:"confirm_ms"`
	OnRollback string `json:"on_rollback"`
	BorrowMs   int64  `json:"borrow_ms"`
	// SequenceStart is random, zero or carry-on. SegmentStart is zero or random.
	SequenceStart string `json:"sequence_start"`
	SegmentStart  string `json:"segment_start"`
	// Confirmed is true once a node has served in the cluster.
	Confirmed bool `json:"confirmed"`
	// Frozen is true if no new node gets a worker until FrozenUntilMs, 0
	// without a freeze.
	Frozen        bool  `json:"frozen"`
	FrozenUntilMs int64 `json:"frozen_until_ms"`
	// FrozenBy names the operator who froze registration. It is "" if the reason is
	// that ZooKeeper lost data.
	FrozenBy string `json:"frozen_by"`
	// IDsEndMs is the time at which the layout's time field runs out, 0 for a layout that this
	// release cannot parse.
	IDsEndMs int64 `json:"ids_end_ms"`
}

// DescribeCluster returns the report of a cluster at the moment now.
func DescribeCluster(name string, cl coordinator.Cluster, now time.Time) ClusterReport {
	r := ClusterReport{
		Name: name, UUID: cl.UUID, Layout: cl.Layout, Slots: cl.Slots, Datacenter: cl.Datacenter,
		LeaseMs: cl.LeaseMs, ConfirmMs: cl.ConfirmMs, Confirmed: cl.InUse, OnRollback: node.OnRollback(cl),
		BorrowMs:      cl.BorrowMs,
		SequenceStart: node.SequenceStart(cl), SegmentStart: node.SegmentStart(cl),
	}
	if now.UnixMilli() < cl.FrozenUntil {
		r.Frozen, r.FrozenUntilMs, r.FrozenBy = true, cl.FrozenUntil, cl.FrozenBy
	}
	if layout, err := worker.ParseLayout(cl.Layout); err == nil {
		r.IDsEndMs = layout.Expires().UnixMilli()
	}
	return r
}
