package coordinator

import (
	"time"

	"github.com/flaked/flaked/timeguard"
)

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
