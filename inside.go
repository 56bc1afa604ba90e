package flaked

import (
	"context"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/ops/inside"
	"github.com/flaked/flaked/internal/ops/view"
)

func init() {
	inside.Of = func(n any) inside.Parts {
		of := n.(*Node)
		return inside.Parts{Node: of.node, Issuer: of.issuer, Cluster: of.cluster}
	}
	inside.SetTrace = func(config any, trace coordinator.Trace) { config.(*Config).trace = trace }
}

// cluster reads the state of the whole cluster from ZooKeeper, as status reports show it.
func (n *Node) cluster(ctx context.Context) (view.Report, error) {
	r, err := view.Read(ctx, n.backing.store, n.cfg.Cluster)
	if err != nil {
		return r, err
	}
	r.Judge()
	return r, nil
}
