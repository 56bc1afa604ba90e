package coordinator

import (
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/zkstore"
)

// doubt is about a lease that had run out by the leader's clock, and not by ours:
// ZooKeeper may have forgotten that somebody else held the slot meanwhile.
type doubt struct {
	raised bool
	// Both clocks when that was noticed, Unix ms.
	now, stamp int64
	// floor is where the holding begins that is settled again, 0 before that.
	floor int64
}

// doubted reports whether there is a doubt, and the slot is not settled again.
func (hold holding) doubted() bool { return hold.doubt.raised && hold.doubt.floor == 0 }

// clocksAgree is how far behind the leader's our clock may be and the leader's
// still count as right, in milliseconds.
const clocksAgree = int64(limits.ClocksAgree / time.Millisecond)

// hasPassed reports whether bound h had passed when the leader stamped our write. It
// compares h with the later of two clocks: the leader's, since whoever takes a slot goes
// by that as well, and ours as last measured against it. Exception: if the leader was
// more than 5 s ahead and most voters agree with our clock, only ours counts.
func (e evidence) hasPassed(h, stamp int64) bool {
	ahead := e.reading.ahead()
	if ahead < 0 && (!e.agreed || ahead >= -clocksAgree) {
		ahead = 0
	}
	return stamp+ahead >= h
}

// earliest returns now by the earlier of our clock and the leader's, as far as that was
// last heard: a clock that is ahead ends no freeze.
func (e evidence) earliest() int64 {
	if e.reading == (Reading{}) {
		return e.now
	}
	return min(e.now, e.reading.leaderNow(e.now))
}

// previousBound returns the bound that held before our write, and whether ZooKeeper may
// have lost writes since that bound was written. Within one epoch of the leader nothing
// is lost: data that come back older, or not at all, begin another. A standalone server
// has no epoch (0), so it always may. A later write of ours whose answer was lost, with
// another bound and epoch, is ignored.
func (hold holding) previousBound(found Slot, after zkstore.Stat) (h int64, mayHaveLost bool) {
	if !hold.compared {
		return hold.runsUntil(found), true
	}
	return hold.comparedBound, after.Epoch() == 0 || hold.comparedEpoch != after.Epoch()
}

// runsUntil returns the bound of a claim as far as its holder knew. That of the record
// may be of a write that was not acknowledged, or of an older copy.
func (c Claim) runsUntil(found Slot) int64 {
	if c.Settled {
		return c.H
	}
	return found.H
}

// newFloor returns where a doubted holding begins when it is settled: at now or later, and
// above what a forgotten holder may have issued and borrowed.
func (d doubt) newFloor(e evidence) int64 {
	return max(e.now, d.lastPossible(e.agreed)+1) + e.mine.BorrowMs
}

// lastPossible returns how far a forgotten holder may have come: to what the leader's
// clock read when the doubt was raised. If most voters agree with our clock, no more than
// 5 s beyond that are believed.
func (d doubt) lastPossible(agreed bool) int64 {
	if agreed {
		return min(d.stamp, d.now+clocksAgree)
	}
	return d.stamp
}

// floorTooFarAhead reports whether a doubted holding would begin more than 10 s from now.
// The leader's clock may prove wrong by then, and settling cannot be undone.
func (hold holding) floorTooFarAhead(e evidence) bool {
	return hold.doubted() && hold.doubt.lastPossible(e.agreed) > e.now+cooldown.Milliseconds()
}

// ahead returns by how much the clock was ahead of the leader's, in milliseconds.
func (r Reading) ahead() int64 { return (r.Sent+r.Acked)/2 - r.Stamp }
