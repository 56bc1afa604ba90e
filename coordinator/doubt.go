package coordinator

import (
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/zkstore"
)

// What is made of a lease that is over by the leader's clock and not by ours:
// ZooKeeper may have forgotten that somebody else held the slot meanwhile.

// clocksAgree is how far behind the leader's our clock may be and the leader's
// still count as right, in milliseconds.
const clocksAgree = int64(limits.ClocksAgree / time.Millisecond)

// hadRunOut tells whether a bound of ours had passed by the leader's clock when it
// stamped a write of ours. Our own clock may have gone back, or be behind:
// whoever takes a slot goes by the leader's as well, and ZooKeeper may have lost
// that somebody had it. A leader that is off from a clock that most agree with
// is measured by the time that has gone by on it since it was last heard of.
func (e evidence) hadRunOut(h, stamp int64) bool {
	ahead := e.reading.ahead()
	if ahead < 0 && (!e.agreed || ahead >= -clocksAgree) {
		ahead = 0
	}
	return stamp+ahead >= h
}

// earliest is now by the earlier of our clock and the leader's, as far as that was
// last heard: a clock that is ahead ends no freeze.
func (e evidence) earliest() int64 {
	if e.reading == (Reading{}) {
		return e.now
	}
	return min(e.now, e.reading.leaderNow(e.now))
}

// since is the bound that held until a write of ours, and whether ZooKeeper may
// have lost others' writes since it was made. Under one leader's epoch it has
// not: data that come back older, or not at all, begin another. A standalone
// server has none (0) and shows nothing. What is found may be a later write of
// ours, with another bound and epoch, whose answer was lost: it counts for
// nothing until it has been looked at.
func (t tenure) since(found Slot, after zkstore.Stat) (h int64, lost bool) {
	if !t.looked {
		return t.runsUntil(found), true
	}
	return t.bound, after.Epoch() == 0 || t.epoch != after.Epoch()
}

// runsUntil is the bound of a claim as far as its holder knew: that of the record
// may be of a write that was not acknowledged, or of an older copy.
func (c Claim) runsUntil(found Slot) int64 {
	if c.Settled {
		return c.H
	}
	return found.H
}

// begins is where a doubted tenure begins once it is settled: now, and above what a
// holder may have issued that was forgotten, and could borrow.
func (d doubt) begins(e evidence) int64 {
	return max(e.now, d.reached(e.agreed)+1) + e.mine.BorrowMs
}

// reached is how far such a holder may have come: to what the leader's clock read when
// the doubt was raised. If most agree with our clock, that is believed no further than
// clocks that agree may differ.
func (d doubt) reached(agreed bool) int64 {
	if agreed {
		return min(d.stamp, d.now+clocksAgree)
	}
	return d.stamp
}

// tooEarly tells whether a doubted tenure would begin long from now. By then it may
// be the leader's clock that is found wrong, and what has been settled stays.
func (t tenure) tooEarly(e evidence) bool {
	return t.doubted() && t.doubt.reached(e.agreed) > e.now+cooldown.Milliseconds()
}

// ahead is by how much the clock was ahead of the leader's, in milliseconds.
func (r Reading) ahead() int64 { return (r.Sent+r.Acked)/2 - r.Stamp }
