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
//
// A chain runs, or is broken (see brokenAt), or there is noChain.
type Chain struct {
	// Began is the time at which the node sent the first write of the chain, in ns of AtLeast. Sent is that of the last
	// write, in ns of AtMost. Both are 0 unless the chain runs.
	Began int64 `json:"began,omitempty"`
	Sent  int64 `json:"sent,omitempty"`
	// Version is the version of the slot after the last write.
	Version int32 `json:"version,omitempty"`
}

// noChain: no write of the slot is known that ZooKeeper must still have.
var noChain = Chain{}

// brokenAt returns a chain that has ended. The version that ZooKeeper has shown stays, because older data show a loss.
func brokenAt(version int32) Chain { return Chain{Version: version} }

// runs reports whether there is a chain that the next write may continue.
func (ch Chain) runs() bool { return ch.Sent != 0 }

// gap returns the longest time, in ns, from the sending of one write of a chain to the acknowledgement of the next.
func gap(heartbeat time.Duration) int64 { return 2 * int64(heartbeat) }

// extended returns the chain after one more write.
func (ch Chain) extended(w timeguard.Stamped, version int32, heartbeat time.Duration) Chain {
	if !ch.goesOn(w.Acked, heartbeat) {
		ch.Began = w.Sent.Least
	}
	return Chain{ch.Began, w.Sent.Most, version}
}

// goesOn reports whether a write that is acknowledged at now continues the chain.
func (ch Chain) goesOn(now timeguard.Moment, heartbeat time.Duration) bool {
	//mutant:c13-chain-over-a-gap by TestLateRestartConfirms -> return ch.runs()
	return ch.runs() && now.Most >= ch.Sent && now.Most-ch.Sent <= gap(heartbeat)
}

// Unbroken returns how long the chain has lasted at now, 0 if it has a gap by then.
func (ch Chain) Unbroken(now timeguard.Moment, heartbeat time.Duration) time.Duration {
	if !ch.goesOn(now, heartbeat) {
		return 0
	}
	return time.Duration(max(0, now.Least-ch.Began))
}
