package coordinator

import (
	"time"

	"github.com/flaked/flaked/timeguard"
)

// evidence has the inputs of a decision, besides the holderState and what was read. gather makes it.
type evidence struct {
	now      int64            // our clock, Unix ms
	session  int64            // of ZooKeeper, in which a record with self may be written
	at       timeguard.Moment // when it was gathered; after an acknowledgement: when the write was sent, corrected
	horizon  horizon          // as of then
	interval time.Duration    // from one heartbeat to the next
	mine     Cluster          // as this node knows it
	reading  Reading          // our clock against the leader's when that was last read; zero: never
	agreed   bool             // most voters agree with that reading; false outside of heartbeats
	self     Slot             // the fields about this node that each of our records has
}

// gather returns the present evidence. agreed is Report.Agreed, zero outside of heartbeats. A raise of the horizon
// counts from here on, if it is due.
func (c *Coordinator) gather(agreed Reading) evidence {
	session := c.Store.SessionID() // first: self is of this session, or of a later one
	self := Slot{RTTMs: c.rtt, HeartbeatMs: c.Interval.Milliseconds(), Labels: c.Labels}
	if c.Followed != nil {
		self.Followed = c.Followed()
	}
	at := c.Elapsed.Now()
	c.horizon = c.horizon.at(at.Least, c.mine.ConfirmTime())
	return evidence{
		now: c.Now(), session: session, at: at, horizon: c.horizon, interval: c.Interval, mine: c.mine,
		reading: c.reading, agreed: agreed != Reading{} && agreed == c.reading, self: self,
	}
}

// endOfConfirming returns the end of a confirming time that begins now, ns of AtLeast.
func (e evidence) endOfConfirming(cl Cluster) int64 { return e.at.Least + int64(cl.ConfirmTime()) }

// usableHorizon returns the highest lease bound that a record may get. A lease that is not confirmed yet may reach the
// horizon of cl at once (C23).
func (e evidence) usableHorizon(cl Cluster, confirmed bool) int64 {
	if confirmed {
		return e.horizon.usable
	}
	return max(e.horizon.usable, cl.Horizon)
}
