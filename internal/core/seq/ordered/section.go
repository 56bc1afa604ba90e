// Package ordered says who may issue now: of each ordered sequence, and of each section of a family, one node at a time
// is the owner, and issues from memory. The others forward their requests to it. docs/design.md has the reasons. Marks
// like (O2) name its rules.
//
// The invariant: while a node issues, no other node has issued anything from a later block. For its lease has not ended
// by its own clock (O2), and nobody takes the section over before the lease has ended by every clock (O4). Blocks are
// taken as those of other sequences, so no value comes twice, whatever clocks do (O1).
//
// Three types to read:
//
//   - Section is the mode: it issues, forwards, renews its lease, or takes the section over.
//   - Shared has the parts that the sections of a node share: how others are asked, and the preferred owner of each
//     section.
//   - PeerRequest is a request to another node. Package peer has the connections.
package ordered

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/worker"
)

// Section is the ordered mode. One node at a time, the owner, issues from memory; the others forward requests to it. So
// a request that is sent after another was answered gets a higher value. A plain sequence is one section with one lane.
// A family has more of both.
type Section struct {
	*mode.Series
	shared *Shared
	lease  lease
	// lastEnded is the nonce of the last ownership that this process has ended, "" after a Drop without one.
	lastEnded   string
	observation observation // of the record

	counters counters // what the owner may issue

	// lapses counts the leases that ended before they were renewed. lapsedAt has the times at which the last two did.
	lapses     int64
	lapsedAt   [2]int64
	forwarding forwarding
	// staysUntil is the time until which the node keeps the section although another one is its preferred owner, ns of
	// AtMost. It had to take the section.
	staysUntil int64
}

// NewSection returns the mode of an ordered sequence that this node has just learned of, and does not own.
func NewSection(s *mode.Series, shared *Shared) *Section {
	shared.hadSections.Store(true)
	return &Section{Series: s, shared: shared}
}

// Serve is that of mode.Issuing. Without a valid lease the request is forwarded, or waits for a round.
func (s *Section) Serve(r mode.Request, _, _ int64, to []worker.Run) (_ []worker.Run, needsRound bool, _ error) {
	now := s.shared.Now() // (O2): the time that the caller has read may be too early
	if got, ok := r.Wait.Result.(*mode.Result); ok {
		r.Wait.Result = nil
		if got.Err != nil {
			return to, false, got.Err
		}
		s.forwarding.valuesFromOthers += got.Block.Len()
		return got.Block.AppendRuns(to, &got.Values), false, nil
	}
	if r.Wait.Key != "" {
		return to, false, mode.NoKeys(string(r.Name))
	}
	valid := s.lease.valid(now)
	if valid && r.Wait.Passed != nil && !s.isOwnerAsked(r.Wait.Passed) {
		return to, false, NotOwner(s.Name)
	}
	s.AskedAt = now
	if valid {
		return s.issue(r, now, to)
	}
	s.EndIfLapsed(now)
	switch {
	case r.Wait.Since != 0 && now-r.Wait.Since >= int64(mode.Patience) && s.Known.HasOwner() && s.ownedByAnother():
		return to, false, ownerUnreachable(s.Name, s.Known.Address, s.Known.Address == s.shared.ownAddress, s.forwarding.doubtedFor)
	//mutant:o10-passed-on-twice by internal/core/seq:TestRequestIsPassedOnOnce -> case !s.Stale && s.target(now) != "":
	case !s.Stale && r.Wait.Passed == nil && s.target(now) != "": // a request is forwarded once (O10)
		return s.forward(r, now, to)
	}
	return s.WaitOrRefuse(r, now, to)
}

// issue gives the owner's values to a request, or makes the request wait for more positions.
func (s *Section) issue(r mode.Request, now int64, to []worker.Run) (_ []worker.Run, needsRound bool, _ error) {
	p, ok := s.counters.issue(r.Lane, r.N)
	if !ok {
		return s.WaitOrRefuse(r, now, to)
	}
	s.Issued += r.N
	r.Wait.Owner = s.lease.owner
	block := positions.Block{First: p, End: p + r.N}
	return block.AppendRuns(to, &s.Values), s.counters.needsRefill() && s.MayTry(now), nil
}

// EndIfLapsed ends the ownership if its lease has ended, and reports whether it did. What was held is dropped (O5):
// another node may have issued later positions, although ZooKeeper shows nothing of it any more. So the section is not
// given back then, either.
func (s *Section) EndIfLapsed(now int64) bool {
	//mutant:o5-block-kept by internal/core/seq:TestRenewalAfterTheEndIsANewOwnership -> if true {
	if !s.Owns() || now < s.lease.until {
		return false
	}
	s.lapses++
	s.lapsedAt = [2]int64{s.lapsedAt[1], now}
	s.endOwnership(s.lease.owner)
	return true
}

// endOwnership notes that the ownership with this nonce has ended. "": there was none.
func (s *Section) endOwnership(nonce string) {
	if nonce != "" {
		s.Trace.Step("disowns", "name", s.Name, "owner", nonce)
	}
	s.lastEnded, s.lease, s.Last = nonce, lease{}, nil
}

// Lacks is that of mode.Issuing. It does not count requests that can be forwarded.
func (s *Section) Lacks() bool {
	return s.leastWanted() > 0 && (s.Owns() || s.target(s.shared.Now()) == "" || s.hasIncoming())
}

// hasIncoming reports whether an incoming request waits: one that another node has forwarded to this one.
func (s *Section) hasIncoming() bool {
	return slices.ContainsFunc(s.Waiting, func(r mode.Request) bool { return r.Wait.Passed != nil && r.Wait.Result == nil })
}

// OwnsIn reports whether the node is the owner, and has written or read the record in this session.
func (s *Section) OwnsIn(session int64) bool { return s.Owns() && s.lease.session == session }

// LeaseUntil returns when the owner must stop issuing, ns of AtMost.
func (s *Section) LeaseUntil() int64 { return s.lease.until }

// SlowAt returns when a round must look whether another node has answered, ns of AtMost, 0 if it need not.
func (s *Section) SlowAt() int64 { return s.forwarding.slowAt() }

// TakesAhead is that of mode.Issuing: only the owner takes blocks although nobody waits.
func (s *Section) TakesAhead() bool { return s.Owns() }

// Owns reports whether this node is the owner, as far as it knows. Its lease may have ended: see LeaseUntil.
func (s *Section) Owns() bool { return s.lease.owner != "" }

// Drop ends the ownership.
func (s *Section) Drop() { s.endOwnership(s.lease.owner) }

// Pause is that of mode.Issuing. It is short for the owner, whose lease would end.
func (s *Section) Pause(int64) time.Duration {
	if s.Owns() {
		return mode.Backoff(0)
	}
	return mode.Backoff(s.FailedRounds)
}

// Urgency is that of mode.Issuing: a renewal is due, another node does not answer, or it is time to look again at one
// that is in doubt.
func (s *Section) Urgency(sit mode.Situation) mode.Urgency {
	switch {
	case s.slow(sit.AtMost), s.forwarding.doubted() && sit.AtMost >= s.DueAt, s.Owns() && s.writeDue(sit.AtMost):
		return mode.Needed
	}
	return mode.Idle
}

// writeDue reports whether the owner must write the record, or give the section back.
func (s *Section) writeDue(now int64) bool {
	return s.lease.ending || s.shared.mustGiveBackAll() || s.counters.needsRefill() || s.lease.mayRenew(now, s.Known.Hold())
}

// Saw is that of mode.Issuing. It ends the ownership if the lease has ended, or if the record does not show that
// ownership any more. If the record has changed, its owner is no suspect.
func (s *Section) Saw(v mode.View, before *record.Record, sit mode.Situation) {
	s.observation.update(v, sit.Session)
	switch {
	case !s.Owns(), s.EndIfLapsed(sit.AtMost):
	//mutant:o8-replaced by internal/core/seq:TestOwnerReadsThatItIsReplaced -> case false:
	case !s.lease.survives(v): // another node owns it, or what was held is of an earlier incarnation (O8)
		s.endOwnership(s.lease.owner)
	default:
		s.lease.session, s.Last = sit.Session, new(v) // a renewal checks the versions: v was not read at one moment
		s.counters.skipTo(v.Record.RaisedTo)
	}
	if before == nil || before.Nonce != v.Record.Nonce { // the owner lives, or there is another one
		s.forwarding.suspect = ""
	}
	s.forwarding.followOwner(v.Record)
	if v.Record.Owner != "" {
		s.forwarding.lastAnswerer = ""
	}
}

// Report is that of mode.Issuing.
func (s *Section) Report(u *mode.Use) string {
	u.Owns, u.FromOthers, u.Lapses = s.Owns(), s.forwarding.valuesFromOthers, s.lapses
	if u.Owns {
		u.Held = max(0, s.counters.end-s.counters.highest) // skipTo may go above end
	}
	address := s.Known.Address
	// A node need not read the record as long as the preferred owner answers.
	if !s.Known.HasOwner() {
		address = s.forwarding.lastAnswerer
	}
	return fmt.Sprintf("owner=%s term=%d lease_ms=%d passed=%d", cmp.Or(address, "-"), s.Known.Term, s.Known.HoldMs,
		u.FromOthers)
}

// Traced returns what a trace of a write says of how the ownership came about.
func (s *Section) Traced() []any {
	return []any{"ended", s.lastEnded, "since", s.observation.since.Boot}
}

// Flaps reports whether the node has lost two leases of this section in the last minute. Then others should own the
// sections (O9).
func (s *Section) Flaps(now int64) bool {
	return s.lapsedAt[0] != 0 && now-s.lapsedAt[0] < int64(time.Minute)
}
