package coordinator

import "time"

// confirmTime returns the cluster's confirming time plus BorrowMs. A new holder of a slot waits for it after its
// write. In this time a holder that ZooKeeper has lost can come back.
func confirmTime(cl Cluster) time.Duration {
	if cl.ConfirmMs == 0 {
		return 0
	}
	// A holder that ZooKeeper lost may have issued up to BorrowMs ahead of its clock.
	return time.Duration(cl.ConfirmMs+cl.BorrowMs) * time.Millisecond
}

// goesOn reports whether a process that starts again need not wait: its next write continues
// the chain of the process before, so ZooKeeper has lost nothing. v has a cluster and a slot, and both are ours.
func (hold holding) goesOn(v view, e evidence) bool {
	return v.slot.Confirmed && hold.Leased(e.now, e.boot) && hold.Heard.goesOn(e.boot, e.beat) && v.cl.Incarnation == hold.Incarnation
}

// vouches reports whether the record of a peer shows that ZooKeeper had lost nothing when we took our slot: its chain
// is older than that by a confirming time, and has a write since. The last write does not count: it may have been late.
func (hold holding) vouches(peer Slot, cl Cluster) bool {
	return hold.vouchAfter != 0 && !hold.alone && peer.HeardAt > hold.vouchAfter && peer.Incarnation == hold.Incarnation &&
		peer.Confirmed && !peer.Stopped && !peer.Released && peer.UnbrokenMs >= confirmTime(cl).Milliseconds()
}

// Vouched reports whether a peer's record has shown that ZooKeeper had lost nothing when this node took its
// slot. Then it need not wait for the confirming time.
func (c *Coordinator) Vouched() bool { return c.holding.vouched && !c.holding.alone }
