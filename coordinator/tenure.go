package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// tenure is what a process knows of one holding of a slot: the claim, which outlives
// the process, and what does not. All but the claim and granted is of the claim's
// present grant, and begins anew with the next.
//
// Its methods decide. They do no I/O and change nothing.
type tenure struct {
	Claim
	// granted are the nonces of the grants that this process has made.
	granted []string
	// version is the one that the last acknowledged write to the slot made, if written.
	written bool
	version int32
	// bound is the one that the last acknowledged write made whose time by the leader's
	// clock was compared with the bound before it, if looked; epoch is the leader's then.
	looked bool
	bound  int64
	epoch  int64
	// notBefore is when the slot may be settled again, Unix ms: its lease had run out.
	notBefore int64
	doubt     doubt
}

// doubt is about a lease that had run out by the leader's clock, and not by ours:
// ZooKeeper may have forgotten that somebody else held the slot meanwhile.
type doubt struct {
	raised bool
	// Both clocks when that was noticed, Unix ms.
	now, stamp int64
	// floor is what the tenure may issue from, 0 before it is settled again.
	floor int64
}

// evidence is what a decision is made by, beside the tenure and what was read.
type evidence struct {
	now     int64   // our clock, Unix ms
	mine    Cluster // as this node knows it
	reading Reading // our clock against the leader's when that was last read; zero: never
	agreed  bool    // most agree with that reading
	self    Slot    // what each of our records says of this node
}

// tenureOf is what is known of a claim's present grant.
func (c *Coordinator) tenureOf(claim Claim) tenure {
	t := c.held
	if t.Nonce != claim.Nonce {
		t = tenure{granted: t.granted}
	}
	t.Claim = claim
	return t
}

// evidence is what is known now.
func (c *Coordinator) evidence(r Report) evidence {
	self := Slot{RTTMs: c.rtt, HeartbeatMs: c.Interval.Milliseconds(), Labels: c.Labels}
	if c.Process != nil {
		self.Process = c.Process()
	}
	return evidence{c.Now(), c.mine, c.reading, r.Agreed != Reading{} && r.Agreed == c.reading, self}
}

// wentBack tells that a slot's record is from before our last acknowledged
// write, or in its place: versions only go up, so ZooKeeper has lost data.
func (t tenure) wentBack(found *Slot, stat zkstore.Stat) bool {
	return found != nil && t.written &&
		(stat.Version < t.version || stat.Version == t.version && !t.carriedBy(*found))
}

// judge puts the findings on the cluster's record and ours together. Whoever
// took our slot over fences us, also where the cluster record was lost since:
// with a clock behind theirs we would put back a lease that has ended. But an
// older copy of our record that somebody took and has not settled on is ours.
func (t tenure) judge(v view, uuid string) (Finding, string) {
	cluster, finding := JudgeCluster(v.cl, uuid, t.Incarnation), JudgeSlot(v.slot, t.Claim)
	older := t.wentBack(v.slot, v.stat)
	if older && finding == FoundFenced && !v.slot.Settled {
		finding = FoundLost
	}
	switch {
	case cluster == FoundFenced:
		return cluster, fmt.Sprintf("this ZooKeeper now holds cluster %s, not %s", v.cl.UUID, uuid)
	case finding == FoundFenced:
		return finding, fmt.Sprintf("node %s (%s) holds it at term %d, ours was %d", v.slot.Node, v.slot.Name, v.slot.Term, t.Term)
	case cluster == FoundLost:
		return cluster, "ZooKeeper has lost the cluster record"
	case finding == FoundLost && v.slot == nil:
		return finding, "ZooKeeper has lost its record"
	case finding == FoundLost:
		return finding, fmt.Sprintf("ZooKeeper has an older record of it: node %s (%s) at term %d, ours was %d", v.slot.Node, v.slot.Name, v.slot.Term, t.Term)
	case older || v.slot.H < t.H:
		return FoundLost, "ZooKeeper has an older copy of its record"
	}
	return finding, ""
}

// plan is what a heartbeat is to do with a record that is ours.
type plan struct {
	// fenced is why the slot is to be given up; then nothing else counts.
	fenced string
	// renew: it is to be written with the next term, since the process began without
	// ZooKeeper's knowing.
	renew bool
	// slot is what to write, at one time with the proof that the cluster's record has
	// not changed if it becomes settled by that.
	slot    Slot
	settles bool
	// lapsed: the lease had run out, so that the settling time begins anew.
	lapsed bool
	// tenure is what is known from now on, whatever comes of the write.
	tenure tenure
}

// plan decides what to write. v has a cluster and a slot, which are ours.
func (t tenure) plan(v view, e evidence, r Report) plan {
	cl, found := *v.cl, *v.slot
	if r.RestartedFrom != 0 {
		// What this process wrote itself, unacknowledged, is no later copy.
		if found.Generation > r.RestartedFrom && !slices.Contains(t.granted, found.Nonce) {
			return plan{fenced: fmt.Sprintf("it was started from an old copy of its state: ZooKeeper has seen generation %d, that was %d", found.Generation, r.RestartedFrom)}
		}
		return plan{renew: true, tenure: t}
	}
	if !t.Settled && cl.Frozen(t.Worker, e.earliest()) {
		// Kept for an owner that may come back. Waiting for a lease to end, a
		// day perhaps, serves nobody: another slot may be free.
		return plan{fenced: "ZooKeeper lost data and keeps the worker for the owner that it may have had"}
	}
	p := plan{slot: t.in(cl).record(e, t.Term, t.Nonce, found, r.Lease)}
	p.lapsed = e.now >= found.H || found.Settled && e.now < t.notBefore
	if p.lapsed {
		t.notBefore = e.now + settlingTime(cl).Milliseconds() // the write may count without our knowing
	}
	p.slot.State, p.slot.Settled = r.State, found.Settled && !p.lapsed
	p.settles = r.Settle && !p.slot.Settled && t.maySettle(cl, e) && !t.tooEarly(e)
	p.slot.Settled = p.slot.Settled || p.settles
	p.tenure = t
	return p
}

// accept is what is known once the write of a plan is acknowledged: after is the
// record's stat. again: what is written has to be taken back, by another heartbeat.
func (t tenure) accept(p plan, v view, after zkstore.Stat, e evidence) (next tenure, beat Beat, lapsed, again bool) {
	cl, lapsed := *v.cl, p.lapsed
	t.written, t.version = true, v.stat.Version+1 // which another may have overwritten since
	if ran, lost := t.since(*v.slot, after); cl.SettleMs > 0 && lost && e.hadRunOut(ran, after.Mtime) {
		t.doubt = doubt{raised: true, now: e.now, stamp: after.Mtime}
		if !lapsed {
			t.notBefore = e.now + settlingTime(cl).Milliseconds()
		}
		if p.slot.Settled {
			return t, Beat{}, lapsed, true
		}
		lapsed = true
	}
	beat = Beat{Claim: t.in(cl), H: p.slot.H, Settled: p.slot.Settled}
	if beat.Settled && !t.leased(e.now) {
		// Whoever had the slot and was forgotten has issued until now at most, and
		// what it could borrow.
		beat.Claim.Lo = max(t.Lo, e.now+cl.BorrowMs)
	}
	if beat.Settled && t.doubt.raised {
		if t.doubt.floor == 0 {
			t.doubt.floor = t.doubt.begins(e)
		}
		beat.Claim.Lo = max(beat.Claim.Lo, t.doubt.floor)
	}
	t.looked, t.bound, t.epoch = true, p.slot.H, after.Epoch()
	return t, beat, lapsed, false
}

// maySettle: while registration is frozen only holders whose settled lease is
// still running may settle again. One whose lease had run out has to wait as
// if it had just come: somebody else may have come and gone, or may be about
// to come back to a ZooKeeper that has forgotten them.
func (t tenure) maySettle(cl Cluster, e evidence) bool {
	if e.now < t.notBefore {
		return false
	}
	return !cl.Frozen(t.Worker, e.earliest()) || t.leased(e.now) && !t.doubted()
}

// doubted tells whether there is a doubt, and the slot is not settled again.
func (t tenure) doubted() bool { return t.doubt.raised && t.doubt.floor == 0 }

// record is the slot's record as this node writes it over what is there. Its
// lease bound is never below the one there or ours. A lease of 0 means that
// the clock is not trusted: it is reported, and moves nothing.
func (c Claim) record(e evidence, term int64, nonce string, old Slot, lease time.Duration) Slot {
	s := e.self
	s.Node, s.Ticket = c.Node, c.Ticket
	s.Term, s.Nonce = term, nonce
	s.Incarnation, s.ClockWrong = c.Incarnation, lease <= 0
	s.H = max(old.H, c.H)
	s.Reached, s.Reported = old.Reached, e.now
	s.Generation = c.Generation
	if lease > 0 {
		s.H = max(s.H, e.now+lease.Milliseconds())
		s.Reached = max(old.Reached, e.now)
	}
	s.inherit(old, e.now)
	return s
}
