package coordinator

import "time"

// horizon has the values of Cluster.Horizon that a node has read or written, in Unix ms. No holder writes a lease
// bound above the cluster's horizon (C23). So a freeze until the horizon outlasts the lease of each disconnected
// holder, even if the holder's clock is ahead.
//
// When the horizon was raised, the node waits for the confirming time before its own lease may reach the new value.
// By then all connected nodes have read the new value, and would freeze registration until then. A lease that is not
// confirmed yet may reach the new value at once.
//
// Scenario: A's clock is far ahead. A raises the horizon, writes a lease up to it, and is cut off. ZooKeeper loses both
// writes. B has not read the raise, and freezes registration until the horizon that it knows. A's lease outlasts that.
type horizon struct {
	known  int64 // the highest that was read or written
	usable int64 // the own lease may reach it
	next   int64 // becomes usable; not above usable: none does
	since  int64 // when next was read, ns of AtLeast
}

// saw returns the horizon after v was read or written at now, ns of AtLeast. The first one that a process reads
// counts at once.
func (h horizon) saw(v, now int64) horizon {
	if v <= h.known {
		return h
	}
	h.known = v
	switch {
	case h.usable == 0:
		h.usable = v
	case h.next <= h.usable:
		h.next, h.since = v, now
	}
	return h
}

// at returns the horizon at now, ns of AtLeast. confirm is the cluster's confirming time.
func (h horizon) at(now int64, confirm time.Duration) horizon {
	//mutant:c23-horizon-counts-at-once by TestHorizon -> if h.next > h.usable {
	if h.next > h.usable && now-h.since >= int64(confirm) {
		h.usable = h.next
		if h.known > h.next {
			h.next, h.since = h.known, now
		}
	}
	return h
}

// horizonSlackMs is the least distance, in ms, of a lease bound below the horizon. A node that would come closer raises
// the horizon. The distance is the time until a raise counts: the confirming time, and a heartbeat of a quarter of it.
func (c Cluster) horizonSlackMs() int64 { return c.ConfirmTime().Milliseconds() * 5 / 4 }

// nextHorizon returns the horizon that a node writes at now, Unix ms. It lasts for a while, so that the cluster's
// record changes rarely. A freeze until then also covers what others have raised while its writer was cut off, by other
// clocks.
func (c Cluster) nextHorizon(now int64) int64 {
	return max(c.Horizon, c.lastLease(now)+c.LeaseMs/64+2*c.horizonSlackMs())
}

// lastLease returns the latest lease bound that a node can have written at now, Unix ms by any clock in use.
func (c Cluster) lastLease(now int64) int64 { return now + c.LeaseMs + clocksApart }

// FreezeEnd returns the end of a freeze of registration after a loss that shows at now, Unix ms by any clock in use,
// and the lease bound of a stand-in that is created then. It is the latest lease bound that any holder can have: that
// of a lease from now, or the horizon.
func (c Cluster) FreezeEnd(now int64) int64 {
	//mutant:c21-freeze-ends-early by TestFreezeEnd -> return max(c.Horizon, c.lastLease(now)) - 60_000
	return max(c.Horizon, c.lastLease(now))
}

// Freeze returns the record with a higher horizon, and with registration frozen because of a loss that shows at now. It
// shortens no freeze.
func (c Cluster) Freeze(now int64) Cluster {
	c.Horizon = c.nextHorizon(now)
	c.FrozenUntil = max(c.FrozenUntil, c.FreezeEnd(now))
	return c
}

// withHorizon returns the cluster's record with a higher horizon, if a lease from now, Unix ms, comes too close to it.
// now is not of a clock that is ahead. A lease of 0 means that the clock is not trusted.
func (c Cluster) withHorizon(now int64, lease time.Duration) Cluster {
	if lease > 0 && now+lease.Milliseconds() > c.Horizon-c.horizonSlackMs() {
		c.Horizon = c.nextHorizon(now)
	}
	return c
}
