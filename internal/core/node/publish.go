package node

import (
	"time"

	"github.com/flaked/flaked/coordinator"
)

// publish starts serving if the tenure may serve and a bound above its floor is on disk. Otherwise it sets the refusal.
func (n *Node) publish() {
	n.mu.Lock()
	t, ready := n.held, n.mayPublish()
	n.unlock()
	if !ready {
		return
	}
	n.extend(0)
	n.mu.Lock()
	defer n.unlock()
	if n.held != t || !n.mayPublish() { // this took time, and the other loop may have published
		return
	}
	if n.disk.err != nil && t.gen.Limit() <= n.layout.CeilTick(t.floor) {
		n.refuseLocked(Refusal{Phase: Refusing, Cause: CauseReservedBound})
		return
	}
	n.cfg.Trace.Step("serving", "worker", t.Worker, "floor", t.floor, "now", n.now())
	n.phase = Serving
	n.serving.Store(t)
	n.beginOnce.Do(func() {
		n.servedAt.Store(n.mono())
		close(n.began)
	})
	claim := n.view.Load().Claim
	n.say(n.log.Info, "serving", "worker", t.Worker, "term", claim.Term, "lease_left_s", n.leaseLeftS(claim))
}

// mayPublish sets the refusal of a tenure that waits to be published and may not serve, unless another refusal stands
// already: while the clock is wrong, and after the lease had run out until a new tenure has replaced this one. If the
// clock is below the floor, it wakes the disk loop, which looks again in time. mayPublish reports whether the tenure
// may serve. mu is held.
func (n *Node) mayPublish() bool {
	t, claim, now := n.held, n.view.Load().Claim, n.now()
	switch {
	case t == nil || n.serving.Load() == t || n.phase == Stopping:
		return false
	// (C10) The wall clock is enough here, because the IDs carry it: coordinator.Claim.Leased also asks the boot clock.
	// A lease that expired while the node was disconnected counts again once the slot is confirmed again.
	case !claim.EverConfirmed || now >= claim.LeaseUntil:
		if n.phase != Confirming {
			n.refuseLocked(Refusal{Phase: Confirming, Cause: CauseConfirming})
		}
		return false
	case n.skew.wrong || t.lapsed:
		return false
	case now < t.floor: // (C2)
		if n.phase != Waiting {
			n.refuseLocked(Refusal{Phase: Waiting, Cause: CauseBelowFloor})
			n.say(n.log.Info, "waiting for the clock to reach the floor", "wait_ms", t.floor-now)
			wake(n.wakeDisk)
		}
		return false
	}
	return true
}

// leaseLeftS returns how many seconds are left until a claim's lease bound, for the log.
func (n *Node) leaseLeftS(c coordinator.Claim) float64 {
	return ms(c.LeaseUntil - n.now()).Round(time.Second).Seconds()
}
