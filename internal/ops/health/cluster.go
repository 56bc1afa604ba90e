package health

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
)

// ClusterReport is a cluster in the JSON of `cluster show` and of `status`. Times are Unix milliseconds.
type ClusterReport struct {
	node.ClusterSnapshot
	// Confirmed is true once a node has confirmed a worker in the cluster.
	Confirmed bool `json:"confirmed"`
	// Frozen is true if no new node gets a worker until FrozenUntilMs, 0 without a freeze.
	Frozen        bool  `json:"frozen"`
	FrozenUntilMs int64 `json:"frozen_until_ms"`
	// FrozenBy names the operator who froze registration. It is "" if the reason is that ZooKeeper lost data.
	FrozenBy string `json:"frozen_by"`
}

// DescribeCluster returns the report of a cluster at the moment now.
func DescribeCluster(name string, cl coordinator.Cluster, now time.Time) ClusterReport {
	r := ClusterReport{ClusterSnapshot: node.Describe(name, cl), Confirmed: cl.InUse}
	if now.UnixMilli() < cl.FrozenUntil {
		r.Frozen, r.FrozenUntilMs, r.FrozenBy = true, cl.FrozenUntil, cl.FrozenBy
	}
	return r
}
