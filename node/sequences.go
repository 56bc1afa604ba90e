package node

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/seqstore"
)

// Tenure returns the node's hold on its worker, for named sequences.
func (n *Node) Tenure() seqstore.Tenure { return seqTenure{n} }

type seqTenure struct{ n *Node }

// Confirmed is part of seqstore.Tenure. The node must be confirmed, so that it notices a loss of data.
func (t seqTenure) Confirmed(session int64) bool {
	s := t.n.peek()
	return s.held != nil && s.confirmed && s.phase != Stopping && s.store.session == session
}

// Cluster is part of seqstore.Tenure.
func (t seqTenure) Cluster() (seqstore.ClusterInfo, bool) {
	s := t.n.peek()
	if s.held == nil {
		return seqstore.ClusterInfo{}, false
	}
	return clusterInfo(s.cluster), true
}

func clusterInfo(cl coordinator.Cluster) seqstore.ClusterInfo {
	return seqstore.ClusterInfo{
		UUID:        cl.UUID,
		ConfirmTime: ms(cl.ConfirmMs + cl.BorrowMs),
		MaxLease:    time.Duration(cl.LeaseMs) * time.Millisecond,
		LostData:    cl.Incarnation != 0 || cl.FrozenUntil != 0,
	}
}
