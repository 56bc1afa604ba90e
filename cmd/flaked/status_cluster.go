package main

import (
	"fmt"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
)

// An address is not an identity: a node of another cluster may answer there by now. What nodes say of themselves names
// their cluster, so `flaked status` compares it in the answer itself.

// oneCluster compares the clusters of the nodes that were asked at named addresses. With wanted, a name or a UUID, a
// node of another cluster has failed. Nodes of two clusters are an error, which names both.
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
			return failure("the addresses belong to two clusters: %s to %s and %s to %s. Give --addr of one of them, "+
				"or name it with --cluster", found[first].Address, nameAndUUID(clusters[first].Name, clusters[first].UUID),
				found[i].Address, nameAndUUID(is.Name, is.UUID))
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
