package coordinator

import (
	"cmp"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/timeguard"
)

// stage is one of the stages that the comment of Hold shows.
type stage int

const (
	// seeking: ZooKeeper has no record of this process. The zero value, also of a claim from the directory.
	seeking    stage = iota
	alone            // likewise, and the process issues under the lease of the one before
	confirming       // ZooKeeper has our record, which this process has not confirmed
	confirmed        // and which it has
)

// holdState is all that a process knows of the slot that it holds. Its methods do no I/O.
type holdState struct {
	// Claim is also on disk.
	Claim
	// The process has these, whatever its grant is.
	stage   stage
	granted []string // the nonces of the grants that this process has made
	// startedFrom is the generation of the local record from which the process went on alone. Valid in that stage.
	startedFrom uint64
	// confirmAt is the end of the confirming time (C10), ns of AtLeast. A record that is confirmed earlier must
	// be written again, unconfirmed.
	confirmAt int64
	sinceGrant
}

// sinceGrant is what a process has found out since the present grant. The next grant begins without it.
type sinceGrant struct {
	// bound is the lease bound of the last write whose leader time was compared with the bound before it. 0: none was.
	bound   int64
	hearing Hearing
	doubt   doubt
}

// evidence has the inputs of a decision, besides the hold and what was read.
type evidence struct {
	now     int64            // our clock, Unix ms
	session int64            // of ZooKeeper, in which a record with self may be written
	at      timeguard.Moment // when it was gathered
	horizon horizon          // as of then
	beat    time.Duration    // from one heartbeat to the next
	mine    Cluster          // as this node knows it
	reading Reading          // our clock against the leader's when that was last read; zero: never
	agreed  bool             // most voters agree with that reading
	self    Slot             // the fields about this node that each of our records has
}

// gather returns the present evidence. A raise of the horizon counts from here on, if it is due.
func (c *Coordinator) gather() evidence {
	session := c.Store.SessionID() // first: self is of this session, or of a later one
	self := Slot{RTTMs: c.rtt, HeartbeatMs: c.Interval.Milliseconds(), Labels: c.Labels}
	if c.Followed != nil {
		self.Followed = c.Followed()
	}
	at := c.Elapsed.Now()
	c.horizon = c.horizon.at(at.Least, c.mine.ConfirmTime())
	return evidence{
		now: c.Now(), session: session, at: at, horizon: c.horizon, beat: c.Interval, mine: c.mine,
		reading: c.reading, self: self,
	}
}

// judgedBy returns the evidence with the report's word on our clock.
func (e evidence) judgedBy(r Report) evidence {
	e.agreed = r.Agreed != Reading{} && r.Agreed == e.reading
	return e
}

// confirmAt returns the end of a confirming time that begins now, ns of AtLeast.
func (e evidence) confirmAt(cl Cluster) int64 { return e.at.Least + int64(cl.ConfirmTime()) }

// usableHorizon returns the highest lease bound that a record may get. A lease that is not confirmed yet may reach the
// horizon of cl at once (C23).
func (e evidence) usableHorizon(cl Cluster, confirmed bool) int64 {
	if confirmed {
		return e.horizon.usable
	}
	return max(e.horizon.usable, cl.Horizon)
}

// mayConfirm reports whether the slot may be confirmed now, if its confirming time ends at confirmAt. While
// registration is frozen only a holder whose confirmed lease still runs may confirm again (C21). One whose lease had
// run out waits as a new node does: somebody else may have held the slot meanwhile, or may be about to come back to a
// ZooKeeper that has lost them.
func (hold holdState) mayConfirm(confirmAt int64, cl Cluster, e evidence) bool {
	//mutant:c31-confirming-by-the-boot-clock by TestPlan -> now := e.at.Boot
	now := e.at.Least
	return now >= confirmAt && (!cl.Frozen(e.earliest()) || hold.Leased(e.now, e.at.Boot) && !hold.doubted())
}

// Chain is a run of acknowledged writes of a node's slot (C13). Each was conditional on the one before, and was
// acknowledged at most two heartbeats after that was sent. So while the chain goes on, ZooKeeper cannot have gone back
// to data older than that unnoticed: such data would have an older record of the slot.
//
// A gap that seems too short is dangerous, so gaps are measured by AtMost. The age of the chain must not seem too long,
// so it is measured by AtLeast (C31).
type Chain struct {
	// Began is the time at which the node sent the first write of the chain, in ns of AtLeast. Sent is that of the last
	// write, in ns of AtMost. Both are 0 if there is no chain.
	Began int64 `json:"began,omitempty"`
	Sent  int64 `json:"sent,omitempty"`
	// Version is the version of the slot after the last write. It stays when the chain ends.
	Version int32 `json:"version,omitempty"`
}

// gap returns the longest time between two writes of a chain.
func gap(heartbeat time.Duration) int64 { return 2 * int64(heartbeat) }

// with returns the chain after one more write.
func (ch Chain) with(w timeguard.Stamped, version int32, heartbeat time.Duration) Chain {
	if !ch.goesOn(w.Acked, heartbeat) {
		ch.Began = w.Sent.Least
	}
	return Chain{ch.Began, w.Sent.Most, version}
}

// goesOn reports whether a write that is acknowledged at now continues the chain.
func (ch Chain) goesOn(now timeguard.Moment, heartbeat time.Duration) bool {
	//mutant:c13-chain-over-a-gap by TestLateRestartConfirms -> return ch.Sent != 0
	return ch.Sent != 0 && now.Most >= ch.Sent && now.Most-ch.Sent <= gap(heartbeat)
}

// Unbroken returns how long the chain has lasted at now, 0 if it has a gap by then.
func (ch Chain) Unbroken(now timeguard.Moment, heartbeat time.Duration) time.Duration {
	if !ch.goesOn(now, heartbeat) {
		return 0
	}
	return time.Duration(max(0, now.Least-ch.Began))
}

// From returns the claim of an earlier process by the clocks of this one. If the machine was started again since, no
// clock shows a chain, nor the end of the lease.
func (c Claim) From(e *timeguard.Elapsed, sameBoot bool) Claim {
	was := c.Last.Acked
	if !sameBoot || was == (timeguard.Moment{}) {
		c.Heard, c.Ends, c.Last = Chain{Version: c.Heard.Version}, 0, timeguard.Stamped{}
		return c
	}
	now := e.From(was, true)
	least, most := now.Least-was.Least, now.Most-was.Most
	if c.Heard.Sent != 0 {
		c.Heard.Began, c.Heard.Sent = c.Heard.Began+least, c.Heard.Sent+most
	}
	c.Last.Sent.Least, c.Last.Sent.Most, c.Last.Acked = c.Last.Sent.Least+least, c.Last.Sent.Most+most, now
	return c
}

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

// horizon is what a node knows of Cluster.Horizon (C23). No node writes a lease bound above that. Therefore a freeze
// until the horizon is long enough for each holder that is cut off, even if its clock is ahead.
//
// A raise counts for a node's own lease only when the confirming time has passed since the node read it. By then all
// connected nodes have read it too, and would freeze registration for as long. A lease that is not confirmed yet may
// reach it at once. Bounds are Unix ms.
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

// withHorizon returns the cluster's record with a higher horizon, if a lease from now, Unix ms, comes too close to it.
// now is not of a clock that is ahead. A lease of 0 means that the clock is not trusted.
func (c Cluster) withHorizon(now int64, lease time.Duration) Cluster {
	if lease > 0 && now+lease.Milliseconds() > c.Horizon-c.horizonSlackMs() {
		c.Horizon = c.nextHorizon(now)
	}
	return c
}
