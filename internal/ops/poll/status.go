package poll

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
)

// AtAll asks the nodes at addresses that the user named, and compares their clusters. With wanted, a name or a UUID, a node
// of another cluster has failed. Nodes of two clusters are an ErrTwoClusters, which names both.
func (a *Asker) AtAll(ctx context.Context, wanted string, addrs []string) ([]view.WorkerReport, error) {
	found, clusters := make([]view.WorkerReport, len(addrs)), make([]node.ClusterSnapshot, len(addrs))
	allAtOnce(len(addrs), func(i int) { found[i], clusters[i] = a.At(ctx, addrs[i]) })
	return found, cmp.Or(ctx.Err(), oneCluster(wanted, found, clusters))
}

// ErrTwoClusters means that addresses of the user belong to nodes of two clusters.
var ErrTwoClusters = errors.New("the addresses belong to two clusters")

// oneCluster compares the clusters of the nodes that were found: see AtAll.
func oneCluster(wanted string, found []view.WorkerReport, clusters []node.ClusterSnapshot) error {
	first := -1
	for i, is := range clusters {
		switch {
		case is.UUID == "": // it has not answered, or has not joined its cluster
		case wanted != "" && is.Name != wanted && is.UUID != wanted:
			found[i] = view.WorkerReport{Worker: -1, Address: found[i].Address, Asked: view.AnotherNode,
				Why: otherCluster(is, wanted)}
		case first < 0:
			first = i
		case is.UUID != clusters[first].UUID:
			return fmt.Errorf("%w: %s to %s and %s to %s", ErrTwoClusters, found[first].Address,
				nameAndUUID(clusters[first].Name, clusters[first].UUID), found[i].Address, nameAndUUID(is.Name, is.UUID))
		}
	}
	return nil
}

func otherCluster(is node.ClusterSnapshot, ours string) string {
	return fmt.Sprintf("it belongs to cluster %s, not to %s", nameAndUUID(is.Name, is.UUID), ours)
}

func nameAndUUID(name, uuid string) string {
	return fmt.Sprintf("%s (%s)", view.Short(name), view.Short(uuid))
}
