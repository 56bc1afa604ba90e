package coordinator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/store"
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
	// wait: beforeWrite sets the planned one, which counts if the answer is lost. confirmAfter sets it once a write
	// that begins a confirming time was acknowledged, and afterWrite sets it together with errTakeBack.
	wait wait
	sinceGrant
}

// sinceGrant is what a process has found out since the present grant. The next grant begins without it.
type sinceGrant struct {
	// bound is the lease bound of the last write whose leader time was compared with the bound before it. 0: none was.
	bound int64
	// heardAt is the transaction of our last acknowledged heartbeat. 0: there was none.
	heardAt int64
	// word records whether all live peers have written their slots since.
	word word
	// beyond: our lease reaches a horizon that the peers may not have read, so no peer can vouch (C23).
	beyond bool
	doubt  doubt
}

// wait is the confirming time of a slot (C10).
type wait struct {
	// until is when it ends, ns of the boot clock. If it is firm, no word of peers makes it shorter, and a
	// record that is confirmed before must be taken back: the lease had run out, or a restart was late.
	until int64
	firm  bool
}

// mayEnd reports whether the slot may be confirmed at boot, ns of the boot clock. vouched: the peers have shown that
// ZooKeeper had lost nothing.
func (w wait) mayEnd(boot int64, vouched bool) bool { return boot >= w.until || !w.firm && vouched }

// evidence has the inputs of a decision, besides the hold and what was read.
type evidence struct {
	now     int64         // our clock, Unix ms
	session int64         // of ZooKeeper, in which a record with self may be written
	boot    int64         // our boot clock, ns
	horizon horizon       // as of boot
	beat    time.Duration // from one heartbeat to the next
	mine    Cluster       // as this node knows it
	reading Reading       // our clock against the leader's when that was last read; zero: never
	agreed  bool          // most voters agree with that reading
	self    Slot          // the fields about this node that each of our records has
}

// gather returns the present evidence. A raise of the horizon counts from here on, if it is due.
func (c *Coordinator) gather() evidence {
	session := c.Store.SessionID() // first: self is of this session, or of a later one
	self := Slot{RTTMs: c.rtt, HeartbeatMs: c.Interval.Milliseconds(), Labels: c.Labels}
	if c.Followed != nil {
		self.Followed = c.Followed()
	}
	boot := c.Boot()
	c.horizon = c.horizon.at(boot, c.mine.ConfirmTime())
	return evidence{
		now: c.Now(), session: session, boot: boot, horizon: c.horizon, beat: c.Interval, mine: c.mine,
		reading: c.reading, self: self,
	}
}

// judgedBy returns the evidence with the report's word on our clock.
func (e evidence) judgedBy(r Report) evidence {
	e.agreed = r.Agreed != Reading{} && r.Agreed == e.reading
	return e
}

// firmWait returns the confirming time of a slot whose lease had run out. It begins now.
func (e evidence) firmWait(cl Cluster) wait { return wait{e.boot + int64(cl.ConfirmTime()), true} }

// usableHorizon returns the highest lease bound that a record may get. A lease that is not confirmed yet may reach the
// horizon of cl at once (C23).
func (e evidence) usableHorizon(cl Cluster, confirmed bool) int64 {
	if confirmed {
		return e.horizon.usable
	}
	return max(e.horizon.usable, cl.Horizon)
}

// decision says what a heartbeat does with a record that is ours.
type decision struct {
	// fenced is why the node must give the slot up. If it is set, nothing else counts.
	fenced string
	// renew: the process started without ZooKeeper. Write the next term.
	renew bool
	// slot is the record to write. confirms: the write makes it confirmed, so it must fail if the cluster's record has
	// changed. cluster is that record, with the write's changes.
	slot     Slot
	confirms bool
	cluster  Cluster
	// lapsed: the lease had run out, so the confirming time begins anew. wait is the confirming time from this write
	// on.
	lapsed bool
	wait   wait
}

// plan decides what to write. v has a cluster and a slot, and both are ours.
func (hold holdState) plan(v view, e evidence, r Report) decision {
	found := *v.slot
	switch {
	// A record that this process wrote without an acknowledgement proves no later copy.
	case hold.stage == alone && found.Generation > hold.startedFrom && !slices.Contains(hold.granted, found.Nonce):
		return decision{fenced: fmt.Sprintf("this node was started from an old copy of its state: ZooKeeper has seen "+
			"generation %d, the copy has generation %d", found.Generation, hold.startedFrom)}
	case hold.stage == alone:
		return decision{renew: true}
	case !hold.EverConfirmed && v.cl.Frozen(e.earliest()):
		// The slot is kept for a holder that may come back (C21). Give it up rather than wait for a lease of perhaps a
		// day: another slot may be free.
		return decision{fenced: "registration is frozen, which keeps the worker for an earlier holder"}
	}
	d := decision{cluster: v.cl.withHorizon(e.agreedNow(), r.Lease), wait: hold.wait}
	// afterWrite or writeNextTerm found that our last write must not stay confirmed: write it again, unconfirmed.
	takeBack := found.Confirmed && hold.wait.firm && e.boot < hold.wait.until
	// The boot clock asks only of a confirmed record: an unconfirmed one would lapse at each heartbeat, and
	// never confirm.
	//mutant:c26-lapsed-lease-goes-on by TestPlan -> d.lapsed = takeBack
	d.lapsed = e.now >= found.LeaseUntil || takeBack || found.Confirmed && hold.over(e.boot)
	if d.lapsed {
		d.wait = e.firmWait(*v.cl)
	}
	// A restart that goes on in its chain finds its record confirmed: it needs no write that confirms.
	d.confirms = hold.stage != confirmed && (d.lapsed || !found.Confirmed) && hold.mayConfirm(d.wait, *v.cl, e) &&
		!hold.floorTooFarAhead(e)
	d.cluster.InUse = v.cl.InUse || d.confirms
	confirmed := found.Confirmed && !d.lapsed || d.confirms
	d.slot = hold.record(e, *v.cl, found, r.Lease, e.usableHorizon(d.cluster, confirmed))
	d.slot.State, d.slot.Confirmed = r.State, confirmed
	d.slot.UnbrokenMs, d.slot.HeardAt = hold.Heard.Unbroken(e.boot, e.beat).Milliseconds(), hold.heardAt
	return d
}

// beforeWrite takes over what counts once a write is sent: it may arrive although its answer is lost.
func (hold *holdState) beforeWrite(d decision, e evidence) {
	hold.beyond = hold.beyond || d.slot.LeaseUntil > e.horizon.usable
	hold.wait = d.wait
}

// afterWrite returns the result of the heartbeat after the write was acknowledged, and takes over what that shows.
// after is the record's stat since then, with the leader's time.
//
// The error is errTakeBack if the lease had run out by the leader's clock (C26), and the record was written confirmed.
// The loop in Heartbeat writes it again, unconfirmed.
func (hold *holdState) afterWrite(d decision, v view, after store.Stat, e evidence) (Beat, error) {
	hold.heardAt = after.Mzxid
	hold.word = hold.word.of(e.session, e.boot, after.Mzxid)
	lapsed := d.lapsed
	if v.cl.ConfirmMs > 0 && e.hasPassed(hold.previousBound(*v.slot), after.Mtime) {
		hold.doubt = doubt{raised: true, now: e.now, stamp: after.Mtime}
		if d.slot.Confirmed {
			hold.wait = e.firmWait(*v.cl)
			// Until it is written again, the node serves on below the bound that it had: no other node can have
			// confirmed before that (C3). hold.bound stays, so that the next look finds the same.
			return Beat{}, errTakeBack
		}
		lapsed = true
	}
	hold.Incarnation = v.cl.Incarnation
	hold.bound = d.slot.LeaseUntil
	beat := Beat{LeaseUntil: d.slot.LeaseUntil, Confirmed: d.slot.Confirmed, Floor: hold.Floor}
	if lapsed {
		beat.Wait = v.cl.ConfirmTime()
	}
	if !beat.Confirmed {
		return beat, nil
	}
	if !hold.Leased(e.now, e.boot) {
		// A holder that ZooKeeper lost has issued at most up to now + BorrowMs (C26, C27).
		//mutant:c27-lost-holder-has-not-borrowed -> beat.Floor = max(hold.Floor, e.now)
		beat.Floor = max(hold.Floor, e.now+v.cl.BorrowMs)
	}
	if hold.doubt.raised {
		hold.doubt.floor = cmp.Or(hold.doubt.floor, hold.doubt.newFloor(e))
		beat.Floor = max(beat.Floor, hold.doubt.floor)
	}
	if d.confirms || d.slot.LeaseUntil > v.slot.LeaseUntil {
		beat.ends = endsAt(d.slot.LeaseUntil, e.now, e.boot)
	}
	return beat, nil
}

// mayConfirm reports whether the slot may be confirmed now, if its confirming time is wait. While registration is
// frozen only a holder whose confirmed lease still runs may confirm again (C21). One whose lease had run out waits as a
// new node does: somebody else may have held the slot meanwhile, or may be about to come back to a ZooKeeper that has
// lost them.
func (hold holdState) mayConfirm(wait wait, cl Cluster, e evidence) bool {
	return wait.mayEnd(e.boot, hold.vouched()) &&
		(!cl.Frozen(e.earliest()) || hold.Leased(e.now, e.boot) && !hold.doubted())
}

// record returns the slot's record as this node writes it over the old one. Its lease bound is never below the old
// one's or ours (C3), and a lease does not raise it above the horizon (C23). A lease of 0 means that the clock is not
// trusted: it is reported, and moves no bound.
func (c Claim) record(e evidence, cl Cluster, old Slot, lease time.Duration, horizon int64) Slot {
	s := e.self
	s.Node, s.Ticket = c.Node, c.Ticket
	s.Term, s.Nonce = c.Term, c.Nonce
	s.Incarnation, s.ClockWrong = cl.Incarnation, lease <= 0
	s.LeaseUntil = max(old.LeaseUntil, c.LeaseUntil)
	s.ReportedClock = e.now
	s.Generation = c.Generation
	if lease > 0 {
		//mutant:c3-lease-bound-goes-down by sim -> s.LeaseUntil = min(e.now+lease.Milliseconds(), horizon)
		s.LeaseUntil = max(s.LeaseUntil, min(e.now+lease.Milliseconds(), horizon))
	}
	s.inherit(old, e.now)
	return s
}
