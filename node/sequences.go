package node

import (
	"fmt"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/seqstore"
	"github.com/flaked/flaked/internal/zkstore"
)

// Tenure returns the node's hold on its worker, for named sequences.
func (n *Node) Tenure() seqstore.Tenure { return seqTenure{n} }

type seqTenure struct{ n *Node }

// Hold is part of seqstore.Tenure. The node must be confirmed, so that it notices a loss of data.
func (t seqTenure) Hold() seqstore.Hold {
	s := t.n.peek()
	if s.held == nil || !s.confirmed || s.phase == Stopping || s.store.session == 0 {
		return seqstore.Hold{}
	}
	return seqstore.Hold{Record: fmt.Sprintf("/workers/%04d", s.held.worker), Version: zkstore.AnyVersion}
}

// ReportLoss is part of seqstore.Tenure.
func (t seqTenure) ReportLoss(int64, string) {}

// Cluster is part of seqstore.Tenure.
func (t seqTenure) Cluster() (seqstore.ClusterInfo, bool) {
	s := t.n.peek()
	if s.held == nil {
		return seqstore.ClusterInfo{}, false
	}
	return clusterInfo(s.cluster), true
}

func clusterInfo(cl coordinator.Cluster) seqstore.ClusterInfo {
	return seqstore.ClusterInfo{UUID: cl.UUID, ConfirmTime: ms(cl.ConfirmMs + cl.BorrowMs)}
}
