package coordinator

import (
	"github.com/flaked/flaked/internal/core/limits"
)

// expiry says whether the lease had run out by the leader's clock, although not by ours (C26). Another node may have
// held the slot meanwhile, and ZooKeeper may have lost that.
type expiry struct {
	state expiryState
	// ourClock and leaderClock are both clocks when that was noticed, Unix ms. They are valid in the states expired and
	// reconfirmed.
	ourClock, leaderClock int64
	// floor is the first timestamp after that, Unix ms. It is valid in the state reconfirmed.
	floor int64
}

type expiryState int

const (
	unexpired   expiryState = iota // no stamp of this grant has shown it
	expired                        // one has, and the slot must be confirmed again
	reconfirmed                    // the slot was confirmed again
)

// noteExpired: the leader's clock has shown that the lease had run out. ours is our clock then.
func (h *holderState) noteExpired(ours, leaders int64) {
	h.expiry = expiry{state: expired, ourClock: ours, leaderClock: leaders}
}

// noteReconfirmed: the slot was confirmed again after the lease had run out. The tenure goes on from floor.
func (h *holderState) noteReconfirmed(floor int64) {
	h.expiry.state, h.expiry.floor = reconfirmed, floor
}

// endExpiry ends an expiry that the leader's clock had shown, because the slot has just been confirmed. It returns the
// floor of the tenure. That is above the old floor if the lease had run out, and as a rule if the slot was never
// confirmed before, because there was no lease then.
func (h *holderState) endExpiry(cl Cluster, e evidence) int64 {
	floor := h.Floor
	if !h.Leased(e.now, e.at.Boot) {
		// A holder that ZooKeeper lost has issued at most up to now + BorrowMs (C26, C27).
		//mutant:c27-lost-holder-has-not-borrowed -> floor = max(floor, e.now)
		floor = max(floor, e.now+cl.BorrowMs)
	}
	if h.expiry.state == expired {
		h.noteReconfirmed(h.expiry.newFloor(e))
	}
	if h.expiry.state == reconfirmed {
		floor = max(floor, h.expiry.floor)
	}
	return floor
}

// newFloor returns the floor of a tenure whose lease had run out, when the slot is confirmed again. It is not before
// now, and above all that a lost holder may have issued and borrowed.
func (x expiry) newFloor(e evidence) int64 {
	//mutant:c27-lost-holder-has-not-borrowed -> return max(e.now, x.lastPossible(e.agreed)+1)
	return max(e.now, x.lastPossible(e.agreed)+1) + e.mine.BorrowMs
}

// lastPossible returns the latest time that a lost holder may have reached: the leader's time when the expiry was
// noticed. If most voters agree with our clock, at most 5 s of the leader's lead are believed.
func (x expiry) lastPossible(agreed bool) int64 {
	if agreed {
		return min(x.leaderClock, x.ourClock+clocksAgree)
	}
	return x.leaderClock
}

// floorTooFarAhead reports whether a tenure whose lease had run out would begin more than 10 s from now. The leader's
// clock may prove wrong by then, and confirming cannot be undone.
func (h holderState) floorTooFarAhead(e evidence) bool {
	return h.expiry.state == expired && h.expiry.newFloor(e) > e.now+limits.MaxStartWait.Milliseconds()
}
