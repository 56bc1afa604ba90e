package coordinator

import (
	"errors"
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/zkstore"
)

// What is made of a lease that is over by the leader's clock and not by ours:
// ZooKeeper may have forgotten that somebody else held the slot meanwhile.

var errHadRunOut = errors.New("coordinator: the lease had run out by ZooKeeper's clock")

// hadRunOut tells whether our bound had passed by the leader's clock when it
// stamped a write of ours. Our own clock may have gone back, or be behind:
// whoever takes a slot goes by the leader's as well, and ZooKeeper may have lost
// that somebody had it. A leader that is off from a clock that most agree with
// is measured by the time that has gone by on it since it was last heard of.
func (c *Coordinator) hadRunOut(h, stamp int64, r Report) bool {
	ahead := c.reading.ahead()
	if ahead < 0 && (!c.agreed(r) || ahead >= -clocksAgree) {
		ahead = 0
	}
	return stamp+ahead >= h
}

// agreed tells whether most agree with our clock as it was last read. What they
// said of an earlier reading does not count: the clock may have been set since.
func (c *Coordinator) agreed(r Report) bool {
	return r.Agreed != Reading{} && r.Agreed == c.reading
}

// since is the bound that held until a write of ours, and whether ZooKeeper may
// have lost others' writes since it was made. Under one leader's epoch it has
// not: data that come back older, or not at all, begin another. A standalone
// server has none (0) and shows nothing. What is found may be a later write of
// ours, with another bound and epoch, whose answer was lost: it counts for
// nothing until it has been looked at.
func (c *Coordinator) since(claim Claim, found Slot, after zkstore.Stat) (h int64, lost bool) {
	if claim.Nonce != c.looked.nonce {
		return runsUntil(claim, found), true
	}
	return c.looked.h, after.Epoch() == 0 || c.looked.epoch != after.Epoch()
}

// lookedAt remembers an acknowledged write to our slot as the one to go by.
func (c *Coordinator) lookedAt(slot Slot, epoch int64) {
	c.looked.nonce, c.looked.h, c.looked.epoch = slot.Nonce, slot.H, epoch
}

// runsUntil is the bound of a claim as far as its holder knew: that of the record
// may be of a write that was not acknowledged, or of an older copy.
func runsUntil(claim Claim, found Slot) int64 {
	if claim.Settled {
		return claim.H
	}
	return found.H
}

// raiseIfRunOut is for a process that takes a slot up again: it does not know
// what its predecessor saw of ZooKeeper.
func (c *Coordinator) raiseIfRunOut(claim, next Claim, found Slot, clock Reading) {
	if c.hadRunOut(runsUntil(claim, found), clock.Stamp, Report{}) {
		c.raiseFloor(next, clock.Sent, clock.Stamp)
	}
}

// raiseFloor keeps a claim whose lease had run out by the leader's clock, and
// not by ours, from issuing what a holder that ZooKeeper forgot may have issued.
func (c *Coordinator) raiseFloor(claim Claim, now, stamp int64) {
	c.forgotten = forgotten{nonce: claim.Nonce, now: now, stamp: stamp}
}

// floor is where such a claim begins once it is settled: now, and above what the
// leader's clock read when it was noticed, and what could be borrowed then. That is believed no further than
// clocks that agree may differ if most agree with ours.
func (c *Coordinator) floor(now int64, agreed bool) int64 {
	if c.forgotten.floor == 0 {
		c.forgotten.floor = max(now, c.forgotten.reached(agreed)+1) + c.mine.BorrowMs
	}
	return c.forgotten.floor
}

// reached is how far a holder that was forgotten may have come.
func (f forgotten) reached(agreed bool) int64 {
	if agreed {
		return min(f.stamp, f.now+clocksAgree)
	}
	return f.stamp
}

// tooEarly tells whether such a claim would begin long from now. By then it may
// be the leader's clock that is found wrong, and what has been settled stays.
func (c *Coordinator) tooEarly(claim Claim, now int64, agreed bool) bool {
	return c.doubted(claim) && c.forgotten.reached(agreed) > now+cooldown.Milliseconds()
}

// doubted tells whether that is so and the claim is not settled again.
func (c *Coordinator) doubted(claim Claim) bool {
	return claim.Nonce == c.forgotten.nonce && c.forgotten.floor == 0
}

// clocksAgree is how far behind the leader's our clock may be and the leader's
// still count as right, in milliseconds.
const clocksAgree = int64(limits.ClocksAgree / time.Millisecond)

// earliest is now by the earlier of our clock and the leader's, as far as that was
// last heard: a clock that is ahead ends no freeze.
func (c *Coordinator) earliest(now int64) int64 {
	if c.reading == (Reading{}) {
		return now
	}
	return min(now, c.reading.leaderNow(now))
}

// ahead is by how much the clock was ahead of the leader's, in milliseconds.
func (r Reading) ahead() int64 { return (r.Sent+r.Acked)/2 - r.Stamp }

// forgotten is a tenure whose lease had run out by the leader's clock alone:
// ZooKeeper may have forgotten that somebody held the slot meanwhile.
type forgotten struct {
	nonce string
	// Both clocks when that was noticed, Unix milliseconds.
	now, stamp int64
	// floor is what it may issue from, 0 before it is settled again.
	floor int64
}
