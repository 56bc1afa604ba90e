package node

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/seqstore"
)

// Tenure returns the hold of the group's nodes on their workers, for named sequences.
func (g *NodeGroup) Tenure() seqstore.Tenure { return groupTenure{g} }

type groupTenure struct{ g *NodeGroup }

// Confirmed is part of seqstore.Tenure. All nodes of the group that hold a worker must be confirmed: each of them
// can be the one that notices a loss of data.
func (t groupTenure) Confirmed(session int64) bool {
	held := 0
	for _, n := range t.g.nodes {
		s := n.peek()
		if s.held == nil {
			continue
		}
		if !s.confirmed || s.phase == Stopping || s.store.session != session {
			return false
		}
		held++
	}
	return held > 0
}

// Cluster is part of seqstore.Tenure.
func (t groupTenure) Cluster() (seqstore.ClusterInfo, bool) {
	for _, n := range t.g.nodes {
		if s := n.peek(); s.held != nil {
			return clusterInfo(s.cluster), true
		}
	}
	return seqstore.ClusterInfo{}, false
}

func clusterInfo(cl coordinator.Cluster) seqstore.ClusterInfo {
	return seqstore.ClusterInfo{
		UUID:        cl.UUID,
		ConfirmTime: ms(cl.ConfirmMs + cl.BorrowMs),
		MaxLease:    time.Duration(cl.LeaseMs) * time.Millisecond,
		LostData:    cl.Incarnation != 0 || cl.FrozenUntil != 0,
	}
}
