package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// holderState is the state of this process as a holder: its claim, its stage, and the facts that it has proved about
// its slot. The facts are: which record of the slot is in ZooKeeper, that ZooKeeper has lost no write of the slot
// since, and that no other node can have held the slot meanwhile. By these facts its methods decide what the process
// writes next, above all whether that write confirms the slot. They do no I/O: a heartbeat reads, calls plan, writes,
// and reports an acknowledged write to acked.
//
//	Seeking ──a write of the slot is acknowledged──> Confirming
//	Seeking ──GoAlone──> Alone ──the restart is reported──> Confirming
//	Confirming ──a confirmed record is acknowledged, and saved──> Confirmed
//	Confirmed ──the lease had run out──> Confirming
//	any but Seeking ──a lost record is restored──> Confirmed
//
// A restart that goes on in its chain writes its record confirmed. It is in the stage Confirming all the same, until
// the first heartbeat has been accepted.
//
// Invariant: only becomeAccepted raises the lease bound of the claim, after the acknowledgement (C4). IDs are issued
// only under a confirmed claim, from its floor up to its lease bound. In the stages Alone and Confirming that is the
// bound of an earlier process, or of the lease before.
type holderState struct {
	// Claim is the node's claim on the slot. The local record on the disk has the same claim.
	Claim
	stage Stage
	// granted are the nonces of all grants that this process has begun for the slot.
	granted []string
	// startedFrom is the generation of the local record that the process went on from. It is valid in the stage Alone.
	startedFrom uint64
	// confirmAt is the earliest time at which the slot may be confirmed (C10), in ns of AtLeast. In the past: at once.
	// A record that is confirmed earlier must be written again, unconfirmed.
	confirmAt int64
	sinceGrant
}

// sinceGrant has the facts that this process has proved since its present grant. Each new grant resets them.
type sinceGrant struct {
	// boundKnown: a write under this grant was acknowledged, and counts. bound is the lease bound that the last such
	// write has set, Unix ms. Without one, the lease bound is that of knownBound.
	boundKnown bool
	bound      int64
	// maxVersion is the highest version of the slot that a write of this process can have made. It is valid if
	// boundKnown.
	maxVersion int32
	expiry     expiry
	peerWait   PeerWait
}

// Stage is one of the stages that the comment of holderState shows.
type Stage int

const (
	Seeking    Stage = iota // ZooKeeper has no record of this process
	Alone                   // ZooKeeper has no record of this process, which issues under the lease of the one before
	Confirming              // ZooKeeper has a record of this process, which has not confirmed it
	Confirmed               // ZooKeeper has a record of this process, which has confirmed it
)

// The transitions. A method become... enters a stage, and a method note... records a fact. Others are acked, which
// applies an acknowledgement, and those of an expiry and of PeerWait.

// newHolderState returns the state of a process that has a claim, from its directory or new.
func newHolderState(claim Claim) holderState { return holderState{Claim: claim, stage: Seeking} }

// becomeAlone: the process goes on from the local record: see Coordinator.GoAlone.
func (h *holderState) becomeAlone(reserved int64, generation uint64) {
	h.stage, h.startedFrom, h.Floor = Alone, generation, max(h.Floor, reserved)
}

// notePending: a grant is saved, whose write may reach ZooKeeper from now on.
func (h *holderState) notePending(saved Claim, generation uint64) {
	h.Claim, h.Generation = saved, generation
	h.granted = append(h.granted, saved.PendingNonce)
}

// adoptPending: the pending grant is the claim's, because its write was acknowledged, or was found in ZooKeeper.
func (h *holderState) adoptPending() { h.Claim, h.sinceGrant = h.nextClaim(), sinceGrant{} }

// noteGrantAcked: the write w of the pending grant was acknowledged, which made this version of the slot and this lease
// bound, Unix ms. It may continue the claim's chain.
func (h *holderState) noteGrantAcked(w timeguard.Stamped, version int32, heartbeat time.Duration, incarnation, bound int64) {
	h.adoptPending()
	h.Incarnation = incarnation
	h.Chain, h.Last = h.Chain.extended(w, version, heartbeat), w
	h.boundKnown, h.bound, h.maxVersion = true, bound, version
}

// noteUnstamped: the write has made this version of the slot, but the leader's stamp of it could not be read.
func (h *holderState) noteUnstamped(version int32) {
	h.Chain, h.maxVersion = brokenAt(version), max(h.maxVersion, version)
}

// noteUnacked: the write may have made this version of the slot, or may still make it.
func (h *holderState) noteUnacked(version int32) { h.maxVersion = max(h.maxVersion, version) }

// noteRestored: ZooKeeper has a record again in the place of the one that it had lost. It was written confirmed, so
// that the stage is Confirmed once the heartbeat is accepted.
func (h *holderState) noteRestored() { h.confirmAt = 0 }

// noteUnleased: the claim has no lease any more, because another cluster has taken the place of its own.
func (h *holderState) noteUnleased() { h.EverConfirmed, h.LeaseUntil = false, 0 }

// breakChain: the next write cannot continue the chain.
func (h *holderState) breakChain() { h.Chain = brokenAt(h.Chain.Version) }

// becomeConfirming: ZooKeeper has the record, which may be confirmed from a time on, ns of AtLeast.
func (h *holderState) becomeConfirming(from int64) { h.stage, h.confirmAt = Confirming, from }

// becomeAccepted: the heartbeat b counts, and what was issued before it up to end, Unix ms, has ended. If b has
// confirmed the slot, the claim's lease bound rises. That happens here only, after the acknowledgement (C4).
func (h *holderState) becomeAccepted(b Beat, end int64) {
	h.Floor = max(b.Floor, end)
	if !b.Confirmed {
		h.becomeConfirming(h.confirmAt)
		return
	}
	h.stage = Confirmed
	h.EverConfirmed, h.LeaseUntil, h.BootEnd = true, b.LeaseUntil, cmp.Or(b.bootEnd, h.BootEnd)
}

// beginIncarnation: ZooKeeper has lost data. In the confirming time from now, nodes restore what they know.
func (h *holderState) beginIncarnation() { h.Chain, h.peerWait = noChain, PeerWait{} }

// recognise takes a grant of this process for the claim's if the record found is of it: its write has arrived, although
// it was not acknowledged. That may be the pending grant, or one before it that arrived late.
func (h *holderState) recognise(found *Slot) {
	if found == nil || found.Node != h.Node || found.Nonce == "" {
		return
	}
	if found.Term > h.Term && slices.Contains(h.granted, found.Nonce) {
		h.PendingTerm, h.PendingNonce = found.Term, found.Nonce
	}
	if found.Nonce == h.PendingNonce {
		h.adoptPending()
	}
}

// action names what a heartbeat does after it has read a record of this node.
type action int

const (
	actWrite    action = iota // write the record again
	actNextTerm               // ZooKeeper does not know yet that the process began without it: report the restart
	actGiveUp                 // give the slot up
)

// decision is an action, and what it needs.
type decision struct {
	action action
	// why is the reason to give up. The other fields are valid for actWrite.
	why string
	// slot is the record to write. confirms: the write makes it confirmed, so it must fail if the cluster's record has
	// changed. cluster is that record, with the write's changes.
	slot     Slot
	confirms bool
	cluster  Cluster
	// reconfirm: the lease has expired by our clocks, or the record was confirmed too early. So the confirming time
	// begins anew. confirmAt is its end from this write on, ns of AtLeast. Whether the lease has expired by the
	// leader's clock, only the acknowledgement shows: see expiry.
	reconfirm bool
	confirmAt int64
}

// plan decides what to write. v has a cluster and a slot, and both are ours.
func (h holderState) plan(v recordPair, e evidence, r Report) decision {
	found := *v.slot
	switch {
	// Scenario: somebody puts an hour-old copy of the state file back, and the node starts while it cannot reach
	// ZooKeeper. The process of that hour has issued above the copy's reserved bound. ZooKeeper shows its generation.
	// A record that this process wrote without an acknowledgement proves no later copy.
	case h.stage == Alone && found.Generation > h.startedFrom && !slices.Contains(h.granted, found.Nonce):
		return decision{action: actGiveUp, why: fmt.Sprintf("this node was started from an old copy of its state: "+
			"ZooKeeper has seen generation %d, the copy has generation %d", found.Generation, h.startedFrom)}
	case h.stage == Alone:
		return decision{action: actNextTerm}
	case !h.EverConfirmed && v.cl.Frozen(e.earliest()):
		// The slot is kept for a holder that may come back (C21). Give it up rather than wait for a lease of perhaps a
		// day: another slot may be free.
		return decision{action: actGiveUp, why: "registration is frozen, which keeps the worker for an earlier holder"}
	}
	d := decision{cluster: v.cl.withHorizon(e.agreedNow(), r.Lease), confirmAt: h.confirmAt}
	unconfirm := found.Confirmed && e.at.Least < h.confirmAt
	// The boot clock counts for a confirmed record only: an unconfirmed one would expire at each heartbeat, and never
	// confirm.
	//mutant:c26-expired-lease-goes-on by TestPlan -> d.reconfirm = unconfirm
	d.reconfirm = e.now >= found.LeaseUntil || unconfirm || found.Confirmed && h.endedByBoot(e.at.Boot)
	if d.reconfirm {
		d.confirmAt = e.endOfConfirming(*v.cl)
	}
	// A restart that goes on in its chain finds its record confirmed: it needs no write that confirms. A record to
	// reconfirm is confirmed by this same write only if the confirming time is 0: its wait begins now.
	d.confirms = h.stage != Confirmed && (d.reconfirm || !found.Confirmed) && h.mayConfirm(d.confirmAt, *v.cl, e) &&
		!h.floorTooFarAhead(e)
	d.cluster.InUse = v.cl.InUse || d.confirms
	confirmed := found.Confirmed && !d.reconfirm || d.confirms
	d.slot = h.record(e, d.cluster, found, r.Lease, r.Phase, confirmed)
	return d
}

// record returns the slot's record as this node writes it over the old one. Its lease bound is never below the old
// one's or ours (C3), and a lease does not raise it above the horizon (C23). A lease of 0 means that the clock is not
// trusted: it is reported, and moves no bound. cl is the cluster's record as the same write leaves it.
func (c Claim) record(e evidence, cl Cluster, old Slot, lease time.Duration, phase string, confirmed bool) Slot {
	s, horizon := e.self, e.usableHorizon(cl, confirmed)
	s.Node, s.Ticket, s.Term, s.Nonce = c.Node, c.Ticket, c.Term, c.Nonce
	s.Phase, s.Confirmed = phase, confirmed
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

// mayConfirm reports whether the slot may be confirmed now, if its confirming time ends at confirmAt. While
// registration is frozen only a holder whose confirmed lease still runs may confirm again (C21).
//
// Scenario: A's lease runs out while A is away. B takes the slot, confirms, and is cut off. ZooKeeper gets older data
// back, in which the slot is A's, and a third node freezes registration for holders like B. If A confirmed now, both
// would issue.
func (h holderState) mayConfirm(confirmAt int64, cl Cluster, e evidence) bool {
	//mutant:c31-confirming-by-the-boot-clock by TestPlan -> now := e.at.Boot
	now := e.at.Least
	return now >= confirmAt &&
		(!cl.Frozen(e.earliest()) || h.Leased(e.now, e.at.Boot) && h.expiry.state != expired)
}

// errUnconfirm: the record was written confirmed, and must be written again, unconfirmed.
var errUnconfirm = errors.New("the record was confirmed too early, or after the lease had expired by ZooKeeper's clock")

// acked notes the facts that an acknowledged write proves, and returns the result of the heartbeat. The write of d has
// replaced v. w has the times of the write by our clocks, and e.at is w.Sent. after is the stat that the write has
// given the record, with the leader's time.
//
// The error is errUnconfirm if the record was written confirmed although it must not be: the lease had run out by the
// leader's clock (C26), or the leader's stamp shows that the confirming time had not passed yet (C31).
func (h *holderState) acked(d decision, v recordPair, w timeguard.Stamped, after store.Stat, e evidence) (Beat, error) {
	h.Chain, h.Last = h.Chain.extended(w, v.slotStat.Version+1, e.interval), w
	h.maxVersion = max(h.maxVersion, v.slotStat.Version+1)
	h.beginPeerWait(after, e, v.cl.ConfirmTime())
	reconfirm := d.reconfirm
	// Scenario: by our clock the lease ran until this write, by the leader's it had ended. In between another node took
	// the slot by the leader's clock, confirmed, and was cut off. ZooKeeper got older data back, so we find our record.
	if v.cl.ConfirmMs > 0 && e.hasPassed(h.previousBound(*v.slot), after.Mtime) {
		h.noteExpired(e.now, after.Mtime)
		if d.slot.Confirmed {
			h.confirmAt = e.endOfConfirming(*v.cl)
			// Until it is written again, the node serves on below the bound that it had: no other node can have
			// confirmed before that (C3). h.bound stays, so that the next heartbeat finds the same expiry.
			return Beat{}, errUnconfirm
		}
		reconfirm = true
	}
	// The leader's stamp shows that less has passed than our clocks have counted, so that we confirm too early (C31).
	//mutant:c31-beat-not-judged-again by TestStampOfABeatThatConfirmsTooEarly -> early := false
	early := d.confirms && e.at.Least < d.confirmAt
	if early && v.cl.ConfirmMs > 0 {
		h.confirmAt = e.endOfConfirming(*v.cl)
		return Beat{}, errUnconfirm
	}
	h.Incarnation = v.cl.Incarnation
	h.boundKnown, h.bound = true, d.slot.LeaseUntil
	beat := Beat{LeaseUntil: d.slot.LeaseUntil, Confirmed: d.slot.Confirmed, Floor: h.Floor}
	if reconfirm {
		beat.wait = v.cl.ConfirmTime()
	}
	if beat.Confirmed {
		beat.Floor = h.endExpiry(*v.cl, e)
		if d.confirms || d.slot.LeaseUntil > v.slot.LeaseUntil {
			beat.bootEnd = bootEndOf(d.slot.LeaseUntil, e.now, e.at.Boot)
		}
	}
	if beat.wait > 0 {
		h.becomeConfirming(w.Acked.Least + int64(beat.wait))
	}
	return beat, nil
}

// continuesChain reports whether a process that starts again need not wait: its next write continues the chain of the
// process before, so ZooKeeper has lost nothing. A new incarnation ends the chain: see beginIncarnation. v has a slot,
// and it is ours.
func (h holderState) continuesChain(v recordPair, e evidence) bool {
	return v.slot.Confirmed && h.Leased(e.now, e.at.Boot) && h.Chain.goesOn(e.at, e.interval)
}

// previousBound returns the lease bound before our write. A later write of ours whose answer was lost is ignored.
func (h holderState) previousBound(found Slot) int64 {
	if h.boundKnown {
		return h.bound
	}
	return h.knownBound(found)
}
