package coordinator

import (
	"time"

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
