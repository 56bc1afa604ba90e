package coordinator

import (
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// Reading compares a clock with that of ZooKeeper's leader: a write began when the clock read Sent, was acknowledged at
// Acked, and the leader stamped it with Stamp. Unix milliseconds.
type Reading struct{ Sent, Acked, Stamp int64 }

// ahead returns by how much the clock was ahead of the leader's, in milliseconds.
func (r Reading) ahead() int64 { return (r.Sent+r.Acked)/2 - r.Stamp }

// leaderNow returns the earliest time that the leader's clock can have when ours reads now, Unix ms.
func (r Reading) leaderNow(now int64) int64 { return r.Stamp + (now - r.Acked) }

// ClockCheck returns an error if this node's clock must not be used. own is its reading, peers are the readings of
// other nodes under the same leader.
type ClockCheck func(own Reading, peers []Reading) error

// clocksAgree is the greatest lead of the leader's clock over ours, in milliseconds, with which the leader's clock
// still counts as right.
const clocksAgree = int64(limits.ClocksAgree / time.Millisecond)

// clocksApart is the greatest difference between two clocks that the rules allow for, in milliseconds.
const clocksApart = int64(limits.ClocksApart / time.Millisecond)

// Four answers to "what time is it now", in Unix ms:
//
//   - now, our clock, decides whether our own lease has ended, and whether a heartbeat reports a freeze
//     (Beat.withFreeze).
//   - earliest decides whether registration is frozen. Outside of heartbeats it raises the horizon.
//   - agreedNow raises the horizon in heartbeats: only these know whether most voters agree with our clock.
//   - leaderNow decides, together with now, whether a slot is free (C7). earliest and the trace use it, too.
//
// And who ends our lease by which clock:
//
//   - Claim.Leased goes by our clock and the boot clock, for all that needs a lease which runs: a start alone, a restart
//     that continues the chain, a confirmation in a freeze, restoring our record, and what a finder of a loss writes.
//   - holderState.plan reconfirms by our clock, and a confirmed record also by the boot clock.
//   - evidence.hasPassed adds the leader's clock, after each acknowledged write (C26).
//   - The node issues IDs, and has its live lock, by our clock alone: the IDs carry it.

// leaderNow returns now by the leader's clock, as last compared, and by ours before that.
func (e evidence) leaderNow() int64 {
	if e.reading == (Reading{}) {
		return e.now
	}
	return e.reading.leaderNow(e.now)
}

// earliest returns now by the earlier of our clock and the leader's, as last compared. So a clock that is ahead ends no
// freeze.
func (e evidence) earliest() int64 {
	//mutant:c21-clock-ahead-ends-a-freeze -> return e.now
	return min(e.now, e.leaderNow())
}

// agreedNow returns now by our clock if most voters agree with it, and else by the earlier one of ours and the
// leader's. So a clock that is ahead raises no horizon further than a node that was cut off expects.
func (e evidence) agreedNow() int64 {
	if e.agreed {
		return e.now
	}
	return e.earliest()
}

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

// twoClocks is the present time by two clocks that agree, ours and the leader's, Unix ms. early is the earlier of both,
// and late the later one.
type twoClocks struct{ early, late int64 }

// setReading stores the stat of our last write and the comparison of clocks that it gives, and returns that comparison.
// The write began when our clock read sent, and has just been acknowledged.
func (c *Coordinator) setReading(sent int64, written store.Stat) Reading {
	c.lastWrite, c.reading = written, Reading{Sent: sent, Acked: c.Now(), Stamp: written.Mtime}
	return c.reading
}

// correctClocks corrects our clocks by a write of our slot that has just been acknowledged (C31): it was sent at the
// moment sent, and the leader stamped it with stamp, Unix ms. correctClocks returns the write with corrected moments.
func (c *Coordinator) correctClocks(sent timeguard.Moment, stamp int64) timeguard.Stamped {
	write := timeguard.Stamped{Sent: sent, Acked: c.Elapsed.Now(), Stamp: stamp}
	c.lastStamped = c.Elapsed.Acknowledged(c.lastStamped, write)
	return c.lastStamped
}
