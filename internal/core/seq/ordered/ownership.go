package ordered

import (
	"cmp"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// How a node takes a section, renews its lease, and gives it back.

// NextWrite is that of mode.Issuing. The write takes the section, renews its lease, with more positions or without, or
// gives the section back.
func (s *Section) NextWrite(v mode.View, sit mode.Situation) *mode.Write {
	if !s.Owns() {
		return s.take(v, sit)
	}
	if s.slow(sit.AtMost) {
		s.forwarding.cancelFlight()
	}
	d := s.Known.Hold()
	s.DueFrom, s.DueAt = renewTimes(s.lease.sent, d)
	if sit.Unconfirmed == 0 && (s.lease.ending || s.shouldGiveBack(sit)) {
		s.lease.ending, s.DueFrom, s.DueAt = true, 0, 0
		return s.giveBack(v, sit)
	}
	due := s.lease.mayRenew(sit.AtMost, d)
	if w := s.refill(v, sit, due); w != nil {
		return s.asRenewal(*w, sit)
	}
	if due {
		return s.asRenewal(record.Write{Record: s.Known.Refreshed(sit.SeqTime)}, sit)
	}
	return nil
}

// refill returns the write that takes more positions, nil if none are needed or the node gets none. If the node gets
// none, refill refuses the requests that wait. due: the lease may be renewed now.
func (s *Section) refill(v mode.View, sit mode.Situation, due bool) *record.Write {
	if len(s.Waiting) == 0 && !s.counters.needsRefill() && !(due && s.counters.usedThird()) {
		return nil
	}
	refusal := mode.Confirming(sit.Unconfirmed)
	//mutant:o7-takes-unconfirmed by internal/core/seq:TestOwnerRenewsBeforeItMayTake -> if true {
	if sit.Unconfirmed == 0 {
		want, need := s.counters.demand(s.Known.Next, time.Duration(sit.AtMost-s.lease.sent), s.Known.Block, s.Waiting)
		var w record.Write
		w, refusal = s.Known.Plan(v.Incarnation(), want, need, sit.SeqTime)
		if refusal == nil {
			return &w
		}
	}
	s.counters.refillAbove = max(s.counters.end, s.counters.highest) // until its next write the owner does not ask again
	if len(s.Waiting) > 0 {
		s.Refuse(refusal, sit.AtMost)
	}
	return nil
}

// asRenewal returns a write that does what w does and keeps the ownership.
func (s *Section) asRenewal(w record.Write, sit mode.Situation) *mode.Write {
	w.Record.Owner = s.lease.owner
	return &mode.Write{Write: w, Session: sit.Session, Renews: true}
}

// shouldGiveBack reports whether the owner should give the section back: nobody asks, the node gives all sections back,
// or another node is the preferred owner of this one. The last reason uses up one of the node's moves, so the caller
// must give the section back if shouldGiveBack returns true.
func (s *Section) shouldGiveBack(sit mode.Situation) bool {
	return sit.AtMost-s.AskedAt > int64(idleAfter) || s.shared.mustGiveBackAll() ||
		sit.AtMost >= s.staysUntil && s.shared.useMove(s.Name)
}

// idleAfter is the time without a request after which the owner gives the section back. Else a name that nobody uses
// would be written for ever.
const idleAfter = time.Minute

// giveBack returns the write that leaves the section without an owner (O6). It returns the positions that no lane has
// issued, so that the next owner goes on without a gap.
func (s *Section) giveBack(v mode.View, sit mode.Situation) *mode.Write {
	r := s.Known.Refreshed(sit.SeqTime)
	//mutant:o6-next-too-low by internal/core/seq:TestStoppedOwnerLeavesNoGap -> rest := record.Remainder{ID: r.ID, Incarnation: r.Incarnation, Block: s.counters.unissued()}; rest.Block.First = s.counters.first
	rest := record.Remainder{ID: r.ID, Incarnation: r.Incarnation, Block: s.counters.unissued()}
	if lower, possible := r.ReturnOf(rest, v.Incarnation()); possible {
		r = lower
	}
	r.Owner, r.Address, r.OwnedAt = "", "", 0
	return &mode.Write{Write: record.Write{Record: r}, Session: sit.Session, Renews: true}
}

// take returns the write that makes this node the owner, if requests need that and nobody else may be the owner. Else
// take returns nil. It also does this:
//
//   - It doubts a node that has not answered in time.
//   - It refuses the incoming requests for which this node must not take the section.
//   - While another node may be the owner, or this one gives all sections back, it makes rounds pause.
//   - If it gets no block, it refuses the requests that wait.
func (s *Section) take(v mode.View, sit mode.Situation) *mode.Write {
	s.noteSlowNode(sit.AtMost)
	s.refuseMisdirected()
	least := s.leastWanted()
	if least == 0 && !s.forwarding.doubted() || !s.hasIncoming() && s.target(sit.AtMost) != "" {
		return nil
	}
	//mutant:o4-at-most by internal/core/seq:TestOwnerAndBootClocksAtAnyRate -> wait := s.observation.freeIn(v, s.lastEnded, sit.AtMost)
	wait := s.observation.freeIn(v, s.lastEnded, sit.AtLeast)
	if wait > 0 || s.shared.mustGiveBackAll() {
		// If the last process of this node was the owner, the requests wait here: no other node could answer them.
		if s.Known.Address != s.shared.ownAddress || s.shared.mustGiveBackAll() {
			s.refuseIncoming(nil)
		}
		s.pauseUntilFree(wait, sit.AtMost)
		return nil
	}
	w, refusal := s.Known.Plan(v.Incarnation(), max(total(s.Waiting), s.Known.Block), max(1, least), sit.SeqTime)
	if refusal != nil {
		s.Refuse(refusal, sit.AtMost)
		return nil
	}
	w.Record.Owner, w.Record.Term = sit.Nonce, w.Record.Term+1
	w.Record.Address, w.Record.OwnedAt = s.shared.ownAddress, s.shared.elapsed.Now().Wall/1e6
	return &mode.Write{Write: w, Session: sit.Session}
}

// leastWanted returns the smallest number of values that a request which waits wants, 0 if none wants any: SEQ does not.
func (s *Section) leastWanted() (least int64) {
	for _, r := range s.Waiting {
		if r.N > 0 && (least == 0 || r.N < least) {
			least = r.N
		}
	}
	return least
}

// noteSlowNode doubts a node that has not answered in time.
func (s *Section) noteSlowNode(now int64) {
	if s.slow(now) {
		s.doubt(s.forwarding.flight, errSilent, false)
		s.forwarding.followOwner(s.Known)
	}
}

// refuseMisdirected refuses the incoming requests for which this node must not become the owner: they name another
// state of the section, or another node should own it.
func (s *Section) refuseMisdirected() {
	elsewhere := s.Known.Owner == "" && s.shared.preferredAddress(s.Name) != s.shared.ownAddress
	s.refuseIncoming(func(r mode.Request) bool { return elsewhere || !s.mayTakeFor(r.Wait.Passed) })
}

// pauseUntilFree makes rounds pause until this node may take the section, but for a second at most. wait is the time
// until the lease of the last owner has certainly ended.
func (s *Section) pauseUntilFree(wait time.Duration, now int64) {
	// Requests that come until then are only queued, so it is a second away at most, however long the lease is.
	s.DueAt = now + int64(min(max(wait, minPause), s.Known.Hold()/6, time.Second))
	s.DueFrom, s.PausedUntil = s.DueAt, s.DueAt
}

// minPause is the shortest pause of pauseUntilFree. A node that gives all sections back may have no lease to wait for:
// it looks whether others can answer by now.
const minPause = 50 * time.Millisecond

// refuseIncoming refuses the incoming requests for which `which` returns true, nil for all: those that other nodes have
// forwarded to this one, which is not the owner.
func (s *Section) refuseIncoming(which func(mode.Request) bool) {
	for _, r := range s.Waiting {
		if r.Wait.Passed != nil && (which == nil || which(r)) {
			r.Wait.Result = &mode.Result{Err: NotOwner(s.Name)}
		}
	}
}

// Wrote is that of mode.Issuing. A write with unknown outcome ends the ownership, and the positions that are left are
// dropped (O3).
func (s *Section) Wrote(w mode.Write, v mode.View, sent, now int64, err error) (woken []mode.Request, leaveUpTo time.Duration) {
	switch {
	case err == nil:
		s.accept(w, v, sent, now)
	case mode.NotMade(err):
		return nil, 0
	//mutant:o3-unknown-outcome by internal/core/seq:TestUnknownRenewalEndsTheOwnership -> case s.lease.owner != "": s.accept(w, v, sent, now)
	default: // freeIn must know which ownership has ended: w may have been written, or the lease have ended meanwhile
		s.endOwnership(cmp.Or(w.Record.Owner, s.lease.owner, s.lastEnded))
	}
	return s.TakeWaiting(), 0
}

// accept applies a write that ZooKeeper has acknowledged. It was sent at sent, and now is the time since.
func (s *Section) accept(w mode.Write, v mode.View, sent, now int64) {
	s.Host.KnowWritten(w, now)
	switch owner := w.Record.Owner; {
	case owner == "":
		s.endOwnership(s.lease.owner)
		return
	case w.Renews && owner != s.lease.owner: // a request has found meanwhile that the lease had ended
		return
	case owner != s.lease.owner: // a new ownership
		s.counters.begin(w.Block)
		if s.shared.preferredAddress(s.Name) != s.shared.ownAddress {
			s.staysUntil = now + int64(time.Minute)
		}
	case s.EndIfLapsed(now): // a renewal after the end of the lease ends the ownership (O5)
		return
	default:
		s.counters.add(w.Block)
	}
	s.lease, s.Last = newLease(w, sent), new(v.After(w))
	s.traceOwner(sent, now)
	s.counters.wrote()
	s.FailedRounds = 0
	s.DueFrom, s.DueAt = renewTimes(sent, s.Known.Hold())
	s.forwarding.suspect = ""
	if s.forwarding.doubted() {
		s.forwarding.cancelFlight()
	}
}

// traceOwner traces that the owner may issue until its lease ends. sent and now are times of AtMost, and steps are
// compared by the boot clock.
func (s *Section) traceOwner(sent, now int64) {
	if s.Trace == nil {
		return
	}
	at := s.shared.elapsed.Now()
	boot := func(atMost int64) int64 { return at.Boot - (at.Most - atMost) }
	s.Trace.Step("owns", "name", s.Name, "owner", s.lease.owner, "sent", boot(sent), "now", boot(now),
		"until", boot(s.lease.until), "hold_ms", s.Known.HoldMs)
}
