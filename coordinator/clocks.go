package coordinator

import (
	"time"

	"github.com/flaked/flaked/internal/core/limits"
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
//   - leaderNow decides nothing by itself. earliest and the trace use it.
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

// twoClocks is the present time by two clocks that agree, ours and the leader's, Unix ms. early is the earlier of both,
// and late the later one.
type twoClocks struct{ early, late int64 }
