// Package inside lets flaked's own packages use what a flaked.Node has and its API does not promise. Package flaked
// sets the functions, because this package must not import it.
package inside

import (
	"context"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/view"
)

// Parts are the parts of a node, and what it says about itself.
type Parts struct {
	Node   *node.Node
	Issuer *seq.Issuer
	// Cluster reads the state of the whole cluster from ZooKeeper, as status reports show it.
	Cluster func(context.Context) (view.Report, error)
}

var (
	// Of returns the parts of a *flaked.Node.
	Of func(node any) Parts
	// SetTrace makes a node that is started with a *flaked.Config report its steps to trace.
	SetTrace func(config any, trace coordinator.Trace)
)
