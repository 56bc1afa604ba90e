package timeguard

import (
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// Lease returns how far ahead of the clock a node pushes its lease bound: one minute plus
// twice the time that the node has served, over all its restarts, but no longer than most.
// New nodes have short leases, so that pods that come and go do not use up the slots.
func Lease(most, served time.Duration) time.Duration {
	if served >= most/2 {
		return most
	}
	return min(most, limits.MinLease+2*max(0, served))
}

// NextReserved returns the next reserved bound: now plus window, but not above the lease
// bound, and never below the present reserved bound. Instants are Unix milliseconds.
func NextReserved(reserved, now, lease int64, window time.Duration) int64 {
	//mutant:c1-no-lease-bound by sim -> next := now + window.Milliseconds()
	next := min(now+window.Milliseconds(), lease)
	//mutant:c5-bound-goes-down by sim -> return next
	return max(reserved, next) // the reserved bound never goes down (C5)
}

// StartWait returns how long a node must wait if the time is now and it may issue nothing
// before floor. Both instants are Unix milliseconds.
func StartWait(now, floor int64) time.Duration {
	return time.Duration(max(0, floor-now)) * time.Millisecond
}
