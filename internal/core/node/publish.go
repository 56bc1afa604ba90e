package node

import (
	"time"

	"github.com/flaked/flaked/coordinator"
)

// standing returns the phase of the tenure held at now, Unix ms: Serving if it may serve, otherwise why it may
// not. It is empty if another refusal stands already: while the clock is wrong, and after the lease had run out
// until a new tenure has replaced this one. A lease that expired while the node was disconnected counts again
// once the slot is confirmed again. mu is held.
func (s *state) standing(now int64) (Phase, Cause) {
	switch {
	case !s.claim.EverConfirmed || now >= s.claim.LeaseUntil: // (C10)
		return Confirming, CauseConfirming
	case s.skew.wrong, s.held.lapsed:
		return "", ""
	case now < s.held.floor: // (C2)
		return Waiting, CauseBelowFloor
	}
	return Serving, ""
}

// publish starts serving if the tenure may serve and a bound above its floor is on disk. Otherwise it sets the refusal.
func (n *Node) publish() {
	n.mu.Lock()
	t, ready := n.held, n.mayPublish()
	n.mu.Unlock()
	if !ready {
		return
	}
	n.extend(0, 0)
	n.mu.Lock()
	defer n.mu.Unlock()
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
	n.log.Info("serving", "worker", t.Worker, "term", n.claim.Term, "lease_left_s", n.leaseLeftS(n.claim))
}

// mayPublish reports whether the tenure held waits to be published, and may serve. If it may not, mayPublish sets
// the refusal. mu is held.
func (n *Node) mayPublish() bool {
	t := n.held
	if t == nil || n.serving.Load() == t || n.phase == Stopping {
		return false
	}
	phase, cause := n.standing(n.now())
	if phase == Serving || phase == "" || phase == n.phase {
		return phase == Serving
	}
	n.refuseLocked(Refusal{Phase: phase, Cause: cause})
	if phase == Waiting {
		n.log.Info("waiting for the clock to reach the floor", "wait_ms", t.floor-n.now())
		wake(n.wakeDisk)
	}
	return false
}

// leaseLeftS returns how many seconds are left until a claim's lease bound, for the log.
func (n *Node) leaseLeftS(c coordinator.Claim) float64 {
	return ms(c.LeaseUntil - n.now()).Round(time.Second).Seconds()
}
