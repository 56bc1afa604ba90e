package timeguard

import "time"

// LeafMaxBehind is the most that is waited for when the clock went back:
// Leaf's rule, SnowflakeIDGenImpl.get: `if (offset <= 5) wait(offset << 1)`.
const LeafMaxBehind = 5 * time.Millisecond

// RotateBehind is the rollback from which a fresh slot costs less than
// waiting for the clock to catch up.
const RotateBehind = 2 * time.Second

// LeafRule is Leaf's answer to a clock behind the last ID: up to 5 ms, wait
// twice that and look again, once; more, refuse.
type LeafRule struct{}

// Wait is how long to wait for a clock that is behind by so much, if at all.
func (LeafRule) Wait(behind time.Duration) (time.Duration, bool) {
	return 2 * behind, behind <= LeafMaxBehind
}

// MaxStartWait is the longest a starting node waits for its clock to reach the
// bound that its predecessor may have used.
const MaxStartWait = 10 * time.Second

// StartWait is how long a node that may issue nothing before floor has to
// wait. Both instants are in Unix milliseconds.
func StartWait(now, floor int64) time.Duration {
	return time.Duration(max(0, floor-now)) * time.Millisecond
}
