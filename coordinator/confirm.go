package coordinator

import "time"

// confirmTime returns the cluster's confirming time (C10) plus BorrowMs (C27). A new holder of a slot waits for it
// after its write. In this time a holder that ZooKeeper has lost can come back.
func confirmTime(cl Cluster) time.Duration {
	//mutant:c10-no-confirming by sim -> if true {
	if cl.ConfirmMs == 0 {
		return 0
	}
	//mutant:c27-lost-holder-has-not-borrowed by sim:borrow -> return time.Duration(cl.ConfirmMs) * time.Millisecond
	return time.Duration(cl.ConfirmMs+cl.BorrowMs) * time.Millisecond
}

// continuesChain reports whether a process that starts again need not wait: its next write continues the chain of the
// process before, so ZooKeeper has lost nothing. A new incarnation ends the chain: see Coordinator.saw. v has a slot,
// and it is ours.
func (hold holdState) continuesChain(v view, e evidence) bool {
	return v.slot.Confirmed && hold.Leased(e.now, e.boot) && hold.Heard.goesOn(e.boot, e.beat)
}
