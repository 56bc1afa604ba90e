package timeguard

import (
	"time"

	"github.com/flaked/flaked/internal/limits"
)

// Lease is how far ahead of the clock the lease bound is pushed: a minute and
// twice the time this node has served, over its restarts, up to most. Young
// nodes have short leases so that pods that come and go do not use up slots.
func Lease(most, served time.Duration) time.Duration {
	if served >= most/2 {
		return most
	}
	return min(most, limits.MinLease+2*max(0, served))
}

// NextReserved is the next reserved bound M: a window ahead of the clock, not
// beyond the lease bound H, and never lower than it was. Instants are in Unix
// milliseconds.
func NextReserved(m, now, h int64, window time.Duration) int64 {
	return max(m, min(now+window.Milliseconds(), h))
}
