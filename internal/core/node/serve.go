package node

// startServing puts the tenure into serving if mayServe allows it, unless the disk takes no writes and has no bound
// above the floor. startServing sets a refusal if the present one does not apply any more.
func (n *Node) startServing() {
	n.mu.Lock()
	t, may := n.tenure, n.serveOrRefuse()
	n.mu.Unlock()
	if !may {
		return
	}
	n.extend(0)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tenure != t || !n.serveOrRefuse() { // this took time, and the other loop may have done it
		return
	}
	if n.disk.err != nil && t.gen.Limit() <= n.layout.CeilTick(t.floor) {
		n.refuseLocked(Refusal{Phase: Refusing, Cause: CauseReservedBound})
		return
	}
	n.cfg.Trace.Step("serving", "worker", t.Worker, "floor", t.floor, "now", n.now())
	n.serving.Store(t)
	if n.beganAt == 0 {
		n.beganAt = n.monotonic()
		close(n.began)
	}
	claim := n.view.Load().Claim
	n.say(n.log.Info, "serving", "worker", t.Worker, "term", claim.Term, "lease_left_s", n.leaseLeftS(claim))
}

// serveOrRefuse returns what mayServe decides, and sets the refusal if the tenure must not serve. A refusal of the same
// phase stays: its cause says more. While the clock is below the floor, serveOrRefuse wakes the disk loop, which looks
// again when the clock has reached the floor. mu is held.
func (n *Node) serveOrRefuse() (may bool) {
	now := n.now()
	may, refusal := n.mayServe(now)
	if refusal.Phase == "" || refusal.Phase == n.phase() {
		return may
	}
	n.refuseLocked(refusal)
	if refusal.Phase == Waiting {
		n.say(n.log.Info, "waiting for the clock to reach the floor", "wait_ms", n.tenure.floor-now)
		wake(n.wakeDisk)
	}
	return may
}

// mayServe reports whether the tenure waits to serve, and may at now, Unix ms. If it waits and must not serve, mayServe
// returns the refusal, or the zero Refusal if the present one stays. It changes nothing. mu is held.
func (n *Node) mayServe(now int64) (may bool, refusal Refusal) {
	t, claim := n.tenure, n.view.Load().Claim
	switch {
	case t == nil || n.serving.Load() == t || n.phase() == Stopping:
		return false, Refusal{}
	// Only under a lease that was confirmed (C10). The issuing clock is enough here, because the IDs carry it:
	// coordinator.Claim.Leased also asks the boot clock. A lease that expired while the node was disconnected counts
	// again once the slot is confirmed again.
	case !claim.EverConfirmed || now >= claim.LeaseUntil:
		return false, Refusal{Phase: Confirming, Cause: CauseConfirming}
	// judgeClock, closeBelowFloor or beginNextTenure has set the refusal. A closed tenure never serves again.
	case n.skew.rounds.Wrong() || t.closed:
		return false, Refusal{}
	case now < t.floor: // an earlier holder may have used the time before (C2)
		return false, Refusal{Phase: Waiting, Cause: CauseBelowFloor}
	}
	return true, Refusal{}
}
