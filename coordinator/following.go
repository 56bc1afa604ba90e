package coordinator

import "time"

// Change is a change of named sequences that nodes have to follow.
type Change struct {
	// At has the number of the change plus 1, and the incarnation of the cluster.
	At Followed
	// MadeMs is when it was written, Unix ms. HoldMs is how long a node issues by what it read before,
	// while it cannot read ZooKeeper.
	MadeMs, HoldMs int64
}

// Behind is a worker whose node has not followed a change.
type Behind struct {
	Entry
	// UntilMs is the time until which the node may issue by what it knew before the change, Unix ms.
	// 0: the node is connected, and must follow soon.
	UntilMs int64
}

// Connected reports whether the node has a session.
func (b Behind) Connected() bool { return b.UntilMs == 0 }

// readsAfterHeartbeat is how long after its last heartbeat a node that is cut off may have read the changes
// last. Its session ends in that time.
const readsAfterHeartbeat = time.Minute

// NotFollowed returns the workers whose nodes have not followed a change, and may issue by what they knew
// before. A node that has stopped cleanly issues nothing. A node that is cut off issues nothing when the hold
// has passed since it last read the changes. If it has not followed, that was before the change. now is Unix ms.
func NotFollowed(slots []Entry, c Change, now int64) []Behind {
	var behind []Behind
	for _, e := range slots {
		s := e.Slot.Followed
		switch until := min(c.MadeMs, e.Stat.Mtime+readsAfterHeartbeat.Milliseconds()) + c.HoldMs + lossTolerance; {
		case s.Incarnation >= c.At.Incarnation && s.Changes >= c.At.Changes:
		case e.Live:
			behind = append(behind, Behind{Entry: e})
		case e.Holds() && now < until:
			behind = append(behind, Behind{e, until})
		}
	}
	return behind
}
