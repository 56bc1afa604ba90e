package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// holdState is one of the states that the comment of Hold shows.
type holdState int

const (
	seeking    holdState = iota // ZooKeeper has no record of this process; the zero value, also of a claim from the directory
	alone                       // likewise, and the process issues under the lease of the one before
	confirming                  // ZooKeeper has our record, which is not confirmed
	confirmed                   // and is confirmed
)

// holding is all that a process knows of the slot that it holds: the claim, which is also on
// disk, and facts that are lost with the process. See renewed for what a new grant resets.
//
// Its methods decide. They do no I/O and change nothing.
type holding struct {
	Claim
	state holdState
	// startedFrom is the generation of the local record from which the process went on alone, until ZooKeeper knows that.
	startedFrom uint64
	// confirmAt is the earliest time at which the slot may be confirmed, ns of the boot clock. If it is firm, the lease had
	// run out, and no word of peers makes the wait shorter.
	confirmAt int64
	firm      bool
	// granted are the nonces of the grants that this process has made.
	granted []string
	// comparedBound is that of the last write whose leader time was compared with the bound
	// before it. Valid if compared.
	compared      bool
	comparedBound int64
	// heardAt is the transaction of our last acknowledged heartbeat, 0: there was none.
	heardAt int64
	// word records whether all live peers have written their slots since.
	word word
	// beyond: our lease reaches a horizon that the peers may not have read, so no peer can vouch.
	beyond bool
	doubt  doubt
}

// evidence has the inputs of a decision, besides the holding and what was read.
type evidence struct {
	now     int64         // our clock, Unix ms
	session int64         // of ZooKeeper, in which a record with self may be written
	boot    int64         // our boot clock, ns
	horizon horizon       // as of boot
	seen    int64         // the highest incarnation that this process has seen
	beat    time.Duration // from one heartbeat to the next
	mine    Cluster       // as this node knows it
	reading Reading       // our clock against the leader's when that was last read; zero: never
	agreed  bool          // most voters agree with that reading
	self    Slot          // the fields about this node that each of our records has
}

// gather returns the present evidence.
func (c *Coordinator) gather(r Report) evidence {
	session := c.Store.SessionID() // first: self is of this session, or of a later one
	self := Slot{RTTMs: c.rtt, HeartbeatMs: c.Interval.Milliseconds(), Labels: c.Labels}
	if c.Followed != nil {
		self.Followed = c.Followed()
	}
	boot := c.Boot()
	c.horizon = c.horizon.at(boot, confirmTime(c.mine))
	return evidence{
		now: c.Now(), session: session, boot: boot, horizon: c.horizon, seen: c.seen, beat: c.Interval, mine: c.mine, reading: c.reading,
		agreed: r.Agreed != Reading{} && r.Agreed == c.reading, self: self,
	}
}

// wentBack reports whether ZooKeeper has lost our last acknowledged write of the slot. It has
// if the record has a lower version, or the same version from another writer.
func (hold holding) wentBack(found *Slot, stat store.Stat) bool {
	return found != nil && hold.Heard != Chain{} &&
		(stat.Version < hold.Heard.Version || stat.Version == hold.Heard.Version && !hold.carriedBy(*found))
}

// showsLoss reports whether a record that fences us also shows that ZooKeeper has lost our
// confirmed one. Another cluster in the place of ours cannot be frozen.
func (hold holding) showsLoss(v view, uuid string) bool {
	return v.slot != nil && JudgeCluster(v.cl, uuid, hold.Incarnation) != FoundFenced &&
		(hold.wentBack(v.slot, v.stat) || hold.wasLost(*v.slot))
}

// judge combines the findings on the cluster's record and on ours. Another holder fences us
// even if the cluster's record is lost: our lease may have ended although our clock, which may
// be behind, says that it runs. Exception: on an older copy of our record, a holder that has
// not confirmed does not fence.
func (hold holding) judge(v view, uuid string, seen int64) (Finding, string) {
	cluster, finding := JudgeCluster(v.cl, uuid, max(hold.Incarnation, seen)), JudgeSlot(v.slot, hold.Claim)
	older := hold.wentBack(v.slot, v.stat)
	if older && finding == FoundFenced && !v.slot.Confirmed {
		finding = FoundLost
	}
	switch {
	case cluster == FoundFenced:
		return cluster, fmt.Sprintf("this ZooKeeper now holds cluster %s, not %s", v.cl.UUID, uuid)
	case finding == FoundFenced:
		return finding, fmt.Sprintf("node %s (%s) holds the worker at term %d, ours was %d", v.slot.Node, v.slot.Name, v.slot.Term, hold.Term)
	case cluster == FoundLost:
		return cluster, "ZooKeeper has lost the cluster record"
	case finding == FoundLost && v.slot == nil:
		return finding, "ZooKeeper has lost the worker's record"
	case finding == FoundLost:
		return finding, fmt.Sprintf("ZooKeeper has an older record of the worker: node %s (%s) at term %d, ours was %d", v.slot.Node, v.slot.Name, v.slot.Term, hold.Term)
	case older || v.slot.LeaseUntil < hold.LeaseUntil:
		return FoundLost, "ZooKeeper has an older copy of the worker's record"
	}
	return finding, ""
}

// decision says what a heartbeat does with a record that is ours.
type decision struct {
	// fenced is why the node must give the slot up. If it is set, nothing else counts.
	fenced string
	// renew: the process started without ZooKeeper. Write the next term.
	renew bool
	// slot is the record to write. confirms: the write makes it confirmed, so it must fail if
	// the cluster's record has changed. cluster is that record, if the write changes it.
	slot     Slot
	confirms bool
	cluster  *Cluster
	// lapsed: the lease had run out, so the confirming time begins anew.
	lapsed bool
	// holding is the holding from now on, even if the write fails.
	holding holding
}

// plan decides what to write. v has a cluster and a slot, and both are ours.
func (hold holding) plan(v view, e evidence, r Report) decision {
	cl, found := *v.cl, *v.slot
	if hold.state == alone {
		// A record that this process wrote without an acknowledgement proves no later copy.
		if found.Generation > hold.startedFrom && !slices.Contains(hold.granted, found.Nonce) {
			return decision{fenced: fmt.Sprintf("this node was started from an old copy of its state: ZooKeeper has seen generation %d, the copy has generation %d", found.Generation, hold.startedFrom)}
		}
		return decision{renew: true}
	}
	if !hold.Confirmed && cl.Frozen(e.earliest()) {
		// The slot is kept for a holder that may come back. Give it up rather than wait for
		// a lease of perhaps a day: another slot may be free.
		return decision{fenced: "registration is frozen, which keeps the worker for an earlier holder"}
	}
	d, next := decision{}, cl.withHorizon(e.agreedNow(), r.Lease)
	// accept found that our last write must not stay confirmed: write it again, unconfirmed.
	takeBack := found.Confirmed && hold.firm && e.boot < hold.confirmAt
	d.lapsed = e.now >= found.LeaseUntil || takeBack || found.Confirmed && hold.over(e.boot)
	if d.lapsed {
		// Set it here, not in accept: the write may arrive although its answer is lost.
		hold.confirmAt, hold.firm = e.boot+int64(confirmTime(cl)), true
	}
	d.confirms = hold.state != confirmed && (d.lapsed || !found.Confirmed) && hold.mayConfirm(cl, e) && !hold.floorTooFarAhead(e)
	confirmed := found.Confirmed && !d.lapsed || d.confirms
	usable := e.horizon.usable
	if !confirmed {
		e.horizon.usable = max(usable, next.Horizon)
	}
	d.slot = hold.in(cl).record(e, hold.Term, hold.Nonce, found, r.Lease)
	hold.beyond = hold.beyond || d.slot.LeaseUntil > usable
	d.slot.State, d.slot.Confirmed = r.State, confirmed
	d.slot.UnbrokenMs, d.slot.HeardAt = hold.Heard.Unbroken(e.boot, e.beat).Milliseconds(), hold.heardAt
	if next.Confirmed = cl.Confirmed || d.confirms; next != cl {
		d.cluster = &next
	}
	d.holding = hold
	return d
}

// accept returns the holding and the result of the heartbeat after the write was
// acknowledged. after is the record's stat since then, with the leader's time.
//
// takeBack: the lease had run out by the leader's clock, and the record was written
// confirmed. It has to be written again, by another heartbeat.
func (d decision) accept(v view, after store.Stat, e evidence) (hold holding, beat Beat, lapsed, takeBack bool) {
	cl := *v.cl
	hold, lapsed = d.holding, d.lapsed
	hold.heardAt = after.Mzxid
	hold.word = hold.word.of(e.session, e.boot, after.Mzxid)
	if cl.ConfirmMs > 0 && e.hasPassed(hold.previousBound(*v.slot), after.Mtime) {
		hold.doubt = doubt{raised: true, now: e.now, stamp: after.Mtime}
		if !lapsed {
			hold.confirmAt, hold.firm = e.boot+int64(confirmTime(cl)), true
		}
		if d.slot.Confirmed {
			return hold, Beat{}, lapsed, true
		}
		lapsed = true
	}
	hold.Claim = hold.in(cl)
	beat = Beat{LeaseUntil: d.slot.LeaseUntil, Confirmed: d.slot.Confirmed, Floor: hold.Floor}
	if beat.Confirmed && !hold.Leased(e.now, e.boot) {
		// A holder that ZooKeeper lost has issued at most up to now + BorrowMs.
		//mutant:c27-lost-holder-has-not-borrowed -> beat.Floor = max(hold.Floor, e.now)
		beat.Floor = max(hold.Floor, e.now+cl.BorrowMs)
	}
	if beat.Confirmed && hold.doubt.raised {
		if hold.doubt.floor == 0 {
			hold.doubt.floor = hold.doubt.newFloor(e)
		}
		beat.Floor = max(beat.Floor, hold.doubt.floor)
	}
	if beat.Confirmed && (d.confirms || d.slot.LeaseUntil > v.slot.LeaseUntil) {
		beat.ends = endsAt(d.slot.LeaseUntil, e.now, e.boot)
	}
	hold.compared, hold.comparedBound = true, d.slot.LeaseUntil
	return hold, beat, lapsed, false
}

// acked returns the holding after a write over the record that v has, which was acknowledged at now, ns of the boot
// clock. The record may have been written again since.
func (hold holding) acked(v view, e evidence, now int64) holding {
	hold.Heard = hold.Heard.with(e.boot, now, v.stat.Version+1, e.beat)
	return hold
}

// mayConfirm reports whether the slot may be confirmed now. While registration is frozen
// only a holder whose confirmed lease still runs may confirm again. One whose lease had run
// out waits as a new node does: somebody else may have held the slot meanwhile, or may be
// about to come back to a ZooKeeper that has lost them.
func (hold holding) mayConfirm(cl Cluster, e evidence) bool {
	if e.boot < hold.confirmAt && (hold.firm || !hold.vouched()) {
		return false
	}
	return !cl.Frozen(e.earliest()) || hold.Leased(e.now, e.boot) && !hold.doubted()
}

// record returns the slot's record as this node writes it over the old one. Its
// lease bound is never below the old one's or ours. A lease of 0 means that
// the clock is not trusted: it is reported, and moves no bound.
func (c Claim) record(e evidence, term int64, nonce string, old Slot, lease time.Duration) Slot {
	s := e.self
	s.Node, s.Ticket = c.Node, c.Ticket
	s.Term, s.Nonce = term, nonce
	s.Incarnation, s.ClockWrong = c.Incarnation, lease <= 0
	s.LeaseUntil = max(old.LeaseUntil, c.LeaseUntil)
	s.ReportedClock = e.now
	s.Generation = c.Generation
	if lease > 0 {
		//mutant:c3-lease-bound-goes-down by sim -> s.LeaseUntil = min(e.now+lease.Milliseconds(), e.horizon.usable)
		s.LeaseUntil = max(s.LeaseUntil, min(e.now+lease.Milliseconds(), e.horizon.usable))
	}
	s.inherit(old, e.now)
	return s
}
