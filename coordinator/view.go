package coordinator

// View has the claim of a node at one moment, and what the node then knew of its cluster and its peers. Goroutines
// share a View, so nobody may change it.
type View struct {
	// Claim is the claim on the slot that the node holds. The node issues IDs under the claim if it is EverConfirmed.
	Claim Claim
	// Stage is the stage of this process. In each stage the claim may be confirmed: an earlier process has confirmed
	// it, and the lease bound of that process counts.
	Stage Stage
	// Next is the claim on another slot that the node is acquiring. The local record is about Next then, with its
	// reserved bound, so that the bound of Claim cannot rise meanwhile. Only package node sets Next, when it saves the
	// claim. nil: none.
	Next *Claim
	// Cluster is the cluster's record as the node last joined it. Of the fields that change later, only HighestSlot and
	// Incarnation are kept up to date. Code that needs the horizon or the freeze reads the record again. Zero, but for
	// HighestSlot, before the node has joined a cluster.
	Cluster Cluster
	Peers   PeersSeen
}

// View returns what the node holds now.
func (c *Coordinator) View() *View {
	return &View{Claim: c.holder.Claim, Stage: c.holder.stage, Cluster: c.mine, Peers: c.peersSeen()}
}
