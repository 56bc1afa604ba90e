package coordinator

import (
	"cmp"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// doubt is raised (C26) if the lease had run out by the leader's clock, but not by ours. Another node may have held the
// slot meanwhile, and ZooKeeper may have lost that.
type doubt struct {
	raised bool
	// Both clocks when that was noticed, Unix ms.
	now, stamp int64
	// floor is where the slot begins after it is confirmed again, Unix ms; 0 before that.
	floor int64
}

// doubted reports whether a doubt was raised and the slot has not been confirmed since.
func (hold holdState) doubted() bool { return hold.doubt.raised && hold.doubt.floor == 0 }

// clocksAgree is how far the leader's clock may be ahead of ours and still count as right, in milliseconds.
const clocksAgree = int64(limits.ClocksAgree / time.Millisecond)

// hasPassed reports whether a bound had passed when the leader stamped our write with stamp. It compares the bound with
// the later of two clocks: the leader's, because a node that takes a slot goes by it as well, and ours as last compared
// with it. Exception: if the leader was more than 5 s ahead and most voters agree with our clock, only ours counts.
func (e evidence) hasPassed(bound, stamp int64) bool {
	ours := stamp + e.reading.ahead()
	if e.agreed && stamp-ours > clocksAgree {
		return ours >= bound
	}
	return max(stamp, ours) >= bound
}

// earliest returns now by the earlier of our clock and the leader's, as last compared. So a clock that is ahead ends no
// freeze.
func (e evidence) earliest() int64 {
	if e.reading == (Reading{}) {
		return e.now
	}
	//mutant:c21-clock-ahead-ends-a-freeze -> return e.now
	return min(e.now, e.reading.leaderNow(e.now))
}

// agreedNow returns now by our clock if most voters agree with it, and else by the earlier one of ours and the
// leader's. So a clock that is ahead raises no horizon further than a node that was cut off expects.
func (e evidence) agreedNow() int64 {
	if e.agreed {
		return e.now
	}
	return e.earliest()
}

// previousBound returns the lease bound before our write. A later write of ours whose answer was lost is ignored.
func (hold holdState) previousBound(found Slot) int64 {
	return cmp.Or(hold.bound, hold.runsUntil(found))
}

// runsUntil returns the lease bound that the holder of the claim knew. The record's own may be of an unacknowledged
// write, or of an older copy.
func (c Claim) runsUntil(found Slot) int64 {
	if c.EverConfirmed {
		return c.LeaseUntil
	}
	return found.LeaseUntil
}

// newFloor returns the floor of a doubted holding when it is confirmed. It is not before now, and above all that a lost
// holder may have issued and borrowed.
func (d doubt) newFloor(e evidence) int64 {
	//mutant:c27-lost-holder-has-not-borrowed -> return max(e.now, d.lastPossible(e.agreed)+1)
	return max(e.now, d.lastPossible(e.agreed)+1) + e.mine.BorrowMs
}

// lastPossible returns the latest time that a lost holder may have reached: the leader's time when the doubt was
// raised. If most voters agree with our clock, at most 5 s of the leader's lead are believed.
func (d doubt) lastPossible(agreed bool) int64 {
	if agreed {
		return min(d.stamp, d.now+clocksAgree)
	}
	return d.stamp
}

// floorTooFarAhead reports whether a doubted holding would begin more than 10 s from now. The leader's clock may prove
// wrong by then, and confirming cannot be undone.
func (hold holdState) floorTooFarAhead(e evidence) bool {
	return hold.doubted() && hold.doubt.newFloor(e) > e.now+limits.MaxStartWait.Milliseconds()
}
