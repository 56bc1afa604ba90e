package coordinator

import "time"

// Chain is a run of acknowledged writes of a node's slot (C13). Each was conditional on the one before, and was
// acknowledged at most two heartbeats after that was sent. So while the chain goes on, ZooKeeper cannot have gone back
// to data older than that unnoticed: such data would have an older record of the slot.
//
// Times are nanoseconds of CLOCK_BOOTTIME, which counts while the machine is suspended.
type Chain struct {
	// Began is when the first write of the chain was sent, and Sent when the last one was. Both are 0 if there is no
	// chain.
	Began int64 `json:"began,omitempty"`
	Sent  int64 `json:"sent,omitempty"`
	// Version is the version of the slot after the last write. It stays when the chain ends.
	Version int32 `json:"version,omitempty"`
}

// gap returns the longest time between two writes of a chain.
func gap(heartbeat time.Duration) int64 { return 2 * int64(heartbeat) }

// with returns the chain after one more write, which was sent at sent and acknowledged at acked.
func (ch Chain) with(sent, acked int64, version int32, heartbeat time.Duration) Chain {
	if !ch.goesOn(acked, heartbeat) {
		ch.Began = sent
	}
	return Chain{ch.Began, sent, version}
}

// goesOn reports whether a write that is acknowledged at now continues the chain.
func (ch Chain) goesOn(now int64, heartbeat time.Duration) bool {
	//mutant:c13-chain-over-a-gap by TestLateRestartConfirms -> return ch.Sent != 0
	return ch.Sent != 0 && now >= ch.Sent && now-ch.Sent <= gap(heartbeat)
}

// Unbroken returns how long the chain has lasted at now, 0 if it has a gap by then.
func (ch Chain) Unbroken(now int64, heartbeat time.Duration) time.Duration {
	if !ch.goesOn(now, heartbeat) {
		return 0
	}
	return time.Duration(now - ch.Began)
}
