// Package ordered says who may count now: of each ordered sequence, and of each section of a family, one node at a time
// is the owner, and issues from memory. The others pass their requests on to it. docs/design.md has the reasons.
// Marks like (O2) name its rules.
//
// The invariant: while a node issues, no other node has issued anything from a later block. For its lease has not ended
// by its own clock (O2), and nobody takes the section over before the lease has ended by every clock (O4). Blocks are
// taken as those of other sequences, so no value comes twice, whatever clocks do (O1).
//
// Three types to read:
//
//   - Section is the mode: it issues, passes on, renews its lease, or takes the section over.
//   - Node has the parts that the sections of a node share: how others are asked, and the place of each section.
//   - Ask is a request to another node. Package peer has the connections.
package ordered

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/worker"
)

// Section is the ordered mode. One node at a time, the owner, issues from memory; the others pass requests on to it.
// So a request that is sent after another was answered gets a higher value. A plain sequence is one section with one
// lane. A family has more of both.
type Section struct {
	*mode.Series
	node  *Node
	lease lease
	// lastEnded is the nonce of the last ownership that this process has ended.
	lastEnded string
	watch     watch

	counters // what the owner may issue

	// lapses counts the leases that ended before they were renewed. lapsedAt has the times at which the last two did.
	lapses   int64
	lapsedAt [2]int64
	passes   passes
	// staysUntil: the node has taken the section although its place is at another one, and keeps it until then.
	staysUntil int64
}

// NewSection returns the mode of an ordered sequence that this node has just learned of, and does not own.
func NewSection(s *mode.Series, node *Node) *Section {
	node.inUse.Store(true)
	return &Section{Series: s, node: node}
}

// idleAfter is the time without a request after which the owner gives the section back. Else a name that nobody uses
// would be written for ever.
const idleAfter = time.Minute

// Serve is that of mode.Issuing. Without a valid lease the request is passed on, or waits for a round.
func (m *Section) Serve(r mode.Request, _, _ int64, to []worker.Run) (_ []worker.Run, low bool, _ error) {
	now := m.node.Now() // (O2): that of the other modes may be late
	if got, ok := r.Wait.Result.(*mode.Result); ok {
		if r.Wait.Result = nil; got.Err != nil {
			return to, false, got.Err
		}
		m.passes.values += got.Block.Len()
		return got.Block.AppendRuns(to, &got.Values), false, nil
	}
	if r.Wait.Key != "" {
		return to, false, mode.NoKeys(string(r.Name))
	}
	if valid := m.lease.valid(now); valid && r.Wait.Passed != nil && !m.isAskedFor(r.Wait.Passed) {
		return to, false, NotOwner(m.Name)
	} else if m.AskedAt = now; valid {
		p, ok := m.issue(r.Lane, r.N)
		if !ok {
			return m.Wait(r, now, to)
		}
		m.Issued += r.N
		r.Wait.Owner = m.lease.owner
		return positions.Block{First: p, End: p + r.N}.AppendRuns(to, m.Values()), m.low() && m.MayTry(now), nil
	}
	if m.lease.owner != "" && !m.lease.ending {
		m.Lapse(now)
	}
	switch {
	case r.Wait.Since != 0 && now-r.Wait.Since >= int64(mode.Patience) && m.ownedByAnother():
		return to, false, noOwner(m.Name, m.Known().Address, m.Known().Address == m.node.own, m.passes.doubtedFor)
	//mutant:o10-passed-on-twice by internal/core/seq:TestRequestIsPassedOnOnce -> case !m.Stale && m.target(now) != "":
	case !m.Stale && r.Wait.Passed == nil && m.target(now) != "": // a request is passed on once (O10)
		return m.pass(r, now, to)
	}
	return m.Wait(r, now, to)
}

// Lapse ends an ownership whose lease has ended. What it held is dropped (O5): another node may have issued later
// positions, although ZooKeeper shows nothing of it any more.
func (m *Section) Lapse(now int64) {
	m.lapses++
	m.lapsedAt = [2]int64{m.lapsedAt[1], now}
	m.endLease()
}

func (m *Section) endLease() {
	if m.lease.owner != "" {
		m.Trace.Step("disowns", "name", m.Name, "owner", m.lease.owner)
	}
	m.lastEnded, m.lease, m.Last = m.lease.owner, lease{}, nil
}

// Lacks does not count requests that can be passed on.
func (m *Section) Lacks() bool {
	return len(m.Waiting) > 0 && (m.Leased() || m.target(m.node.Now()) == "" || m.passedOn())
}

// passedOn reports whether a request waits that another node has passed on to this one.
func (m *Section) passedOn() bool {
	return slices.ContainsFunc(m.Waiting, func(r mode.Request) bool { return r.Wait.Passed != nil && r.Wait.Result == nil })
}

// LeasedIn reports whether the node is the owner, and ZooKeeper has what it goes by in this session.
func (m *Section) LeasedIn(session int64) bool { return m.Leased() && m.lease.session == session }

// Until returns when the owner must stop issuing, ns of AtMost.
func (m *Section) Until() int64 { return m.lease.until }

// SlowAt returns when a round must look whether another node has answered, ns of AtMost, 0 if it need not.
func (m *Section) SlowAt() int64 { return m.passes.slowAt() }

// Used reports whether this node is the owner.
func (m *Section) Used() bool { return m.Leased() }

// Leased reports whether this node is the owner, as far as it knows. Its lease may have ended: see Until.
func (m *Section) Leased() bool { return m.lease.owner != "" }

// Drop ends the ownership.
func (m *Section) Drop() { m.endLease() }

// Pause is short for the owner: its lease ends.
func (m *Section) Pause(int64) time.Duration {
	if m.Leased() {
		return mode.Backoff(0)
	}
	return mode.Backoff(m.Conflicts)
}

// Urgency is that of mode.Issuing: a renewal is due, or another node does not answer.
func (m *Section) Urgency(sit mode.Situation) mode.Urgency {
	switch {
	case m.slow(sit.AtMost), m.passes.doubted() && sit.AtMost >= m.DueAt, m.lease.owner != "" && m.renewalDue(sit.AtMost):
		return mode.Needed
	}
	return mode.Idle
}

// renewalDue reports whether the owner must write the record, or give the section back.
func (m *Section) renewalDue(now int64) bool {
	return m.lease.ending || m.node.leaves() || m.low() || m.lease.mayRenew(now, m.Known().Hold())
}

// Saw takes over what was read.
func (m *Section) Saw(v mode.View, before *record.Record, sit mode.Situation) {
	m.watch.see(v, sit.Session)
	switch {
	case m.lease.owner == "":
	//mutant:o5-block-kept by internal/core/seq:TestRenewalAfterTheEndIsANewOwnership -> case false:
	case sit.AtMost >= m.lease.until:
		m.Lapse(sit.AtMost)
	//mutant:o8-replaced by internal/core/seq:TestOwnerReadsThatItIsReplaced -> case false:
	case !m.lease.survives(v): // another node owns it, or what was held is of an earlier incarnation (O8)
		m.endLease()
	default:
		m.lease.session, m.Last = sit.Session, new(v) // a renewal checks the versions: v was not read at one moment
		m.skipTo(v.Record.From)
	}
	if before == nil || before.Nonce != v.Record.Nonce { // the owner lives, or there is another one
		m.passes.suspect = ""
	}
	if m.passes.leaveBehind(v.Record); v.Record.Owner != "" {
		m.passes.answered = ""
	}
}

// NextWrite returns the write that is due: a renewal with more positions or without, one that takes the section, or one
// that gives it back.
func (m *Section) NextWrite(v mode.View, sit mode.Situation) *mode.Write {
	if m.lease.owner == "" {
		return m.take(v, sit)
	}
	if m.slow(sit.AtMost) {
		m.passes.cancelFlight()
	}
	d := m.Known().Hold()
	m.DueAt = renewAt(m.lease.sent, d)
	if sit.Unconfirmed == 0 && (m.lease.ending || m.endsNow(sit)) {
		m.lease.ending, m.DueAt = true, 0
		return m.giveBack(v, sit)
	}
	due := m.lease.mayRenew(sit.AtMost, d)
	if w := m.extension(v, sit, due); w != nil {
		return m.renewal(*w, sit)
	}
	if due {
		return m.renewal(record.Write{Record: m.Known().Renewed(sit.SeqTime)}, sit)
	}
	return nil
}

// extension returns the write that takes more positions, nil if none are needed or the node gets none.
func (m *Section) extension(v mode.View, sit mode.Situation, due bool) *record.Write {
	if len(m.Waiting) == 0 && !m.low() && !(due && m.usedThird()) {
		return nil
	}
	refusal := mode.Confirming(sit.Unconfirmed)
	//mutant:o7-takes-unconfirmed by internal/core/seq:TestOwnerRenewsBeforeItMayTake -> if true {
	if sit.Unconfirmed == 0 {
		want, need := m.want(m.Known().Next, time.Duration(sit.AtMost-m.lease.sent), m.Known().Block, m.Waiting)
		var w record.Write
		if w, refusal = m.Known().Plan(v.Incarnation(), want, need, sit.SeqTime); refusal == nil {
			return &w
		}
	}
	if m.lowAbove = m.end; len(m.Waiting) > 0 {
		m.Refuse(refusal, sit.AtMost)
	}
	return nil
}

// renewal makes a write keep the ownership.
func (m *Section) renewal(w record.Write, sit mode.Situation) *mode.Write {
	w.Record.Owner = m.lease.owner
	return &mode.Write{Write: w, Session: sit.Session, Renews: true}
}

// endsNow reports whether the owner should give the section back: nobody asks, the node gives all away, or the section
// has its place at another node. The latter uses up a move, so the caller must give it back then.
func (m *Section) endsNow(sit mode.Situation) bool {
	return sit.AtMost-m.AskedAt > int64(idleAfter) || m.node.leaves() || sit.AtMost >= m.staysUntil && m.node.takeMove(m.Name)
}

// giveBack returns the write that leaves the section without an owner (O6). It returns the positions that no lane has
// issued, so that the next owner goes on without a gap.
func (m *Section) giveBack(v mode.View, sit mode.Situation) *mode.Write {
	r := m.Known().Renewed(sit.SeqTime)
	//mutant:o6-next-too-low by internal/core/seq:TestStoppedOwnerLeavesNoGap -> rest := record.Remainder{ID: r.ID, Incarnation: r.Incarnation, Block: positions.Block{First: m.first, End: m.end}}
	rest := record.Remainder{ID: r.ID, Incarnation: r.Incarnation, Block: m.rest()}
	if lower, possible := r.ReturnOf(rest, v.Incarnation()); possible {
		r = lower
	}
	r.Owner, r.Address, r.OwnedAt = "", "", 0
	return &mode.Write{Write: record.Write{Record: r}, Session: sit.Session, Renews: true}
}

// take returns the write that makes this node the owner, if requests need that and nobody else may be the owner.
func (m *Section) take(v mode.View, sit mode.Situation) *mode.Write {
	if m.slow(sit.AtMost) {
		m.doubt(m.passes.flight, errSilent)
		m.passes.leaveBehind(m.Known())
	}
	m.refusePassed(func(r mode.Request) bool { return !m.mayBecome(r.Wait.Passed) })
	//mutant:o4-at-most by internal/core/seq:TestOwnerAndBootClocksAtAnyRate -> wait := m.watch.freeIn(v, m.lastEnded, sit.AtMost)
	wait := m.watch.freeIn(v, m.lastEnded, sit.AtLeast)
	if m.Known().Owner == "" && m.node.place(m.Name) != m.node.own {
		m.refusePassed(nil) // another node is asked next
	}
	switch {
	case len(m.Waiting) == 0 && !m.passes.doubted(), !m.passedOn() && m.target(sit.AtMost) != "":
		return nil
	case wait > 0 || m.node.leaves():
		if m.Known().Address != m.node.own || m.node.leaves() { // else the last process of this node was the owner
			m.refusePassed(nil)
		}
		// A request that comes meanwhile waits until then, so that is soon, also with a long lease.
		m.DueAt = sit.AtMost + int64(min(max(wait, leavesFor), m.Known().Hold()/6, time.Second))
		m.PausedUntil = m.DueAt
		return nil
	}
	all, need := int64(0), int64(math.MaxInt64)
	for _, r := range m.Waiting {
		all, need = all+r.N, min(need, r.N)
	}
	if len(m.Waiting) == 0 {
		need = 1
	}
	w, refusal := m.Known().Plan(v.Incarnation(), max(all, m.Known().Block), need, sit.SeqTime)
	if refusal != nil {
		m.Refuse(refusal, sit.AtMost)
		return nil
	}
	w.Record.Owner, w.Record.Term = sit.Nonce, w.Record.Term+1
	w.Record.Address, w.Record.OwnedAt = m.node.own, m.node.elapsed.Now().Wall/1e6
	return &mode.Write{Write: w, Session: sit.Session}
}

// leavesFor is the time after which a node that leaves looks again whether others can answer what it cannot.
const leavesFor = 50 * time.Millisecond

// refusePassed refuses requests that other nodes have passed on to this one, which is not the owner: those that which
// chooses. nil: all.
func (m *Section) refusePassed(which func(mode.Request) bool) {
	for _, r := range m.Waiting {
		if r.Wait.Passed != nil && (which == nil || which(r)) {
			r.Wait.Result = &mode.Result{Err: NotOwner(m.Name)}
		}
	}
}

// Wrote ends a write. One with unknown outcome ends the ownership: what is left of it is dropped (O3).
func (m *Section) Wrote(w mode.Write, v mode.View, sent, now int64, err error) (woken []mode.Request, leaveUpTo time.Duration) {
	switch {
	case err == nil:
		m.accept(w, v, sent, now)
	case mode.NotMade(err):
		return nil, 0
	//mutant:o3-unknown-outcome by internal/core/seq:TestUnknownRenewalEndsTheOwnership -> case m.lease.owner != "": m.accept(w, v, sent, now)
	default:
		if w.Record.Owner != "" { // it may have been written: freeIn must know that it has ended
			m.lease.owner = w.Record.Owner
		}
		m.endLease()
	}
	return m.TakeWaiting(), 0
}

func (m *Section) accept(w mode.Write, v mode.View, sent, now int64) {
	m.Keeper.KnowWritten(w, now)
	switch owner := w.Record.Owner; {
	case owner == "":
		m.endLease()
		return
	case w.Renews && owner != m.lease.owner: // a request has found meanwhile that the lease had ended
		return
	case owner != m.lease.owner: // a new ownership
		m.begin(w.Block)
		if m.node.place(m.Name) != m.node.own {
			m.staysUntil = now + int64(time.Minute)
		}
	//mutant:o5-block-kept -> case false:
	case now >= m.lease.until: // a renewal after the end of the lease ends the ownership (O5)
		m.Lapse(now)
		return
	default:
		m.add(w.Block)
	}
	m.lease, m.Last = newLease(w, sent), new(v.After(w))
	m.traceOwner(sent, now)
	m.counters.wrote()
	m.Conflicts, m.DueAt = 0, renewAt(sent, m.Known().Hold())
	if m.passes.suspect = ""; m.passes.doubted() {
		m.passes.cancelFlight()
	}
}

// Report is that of mode.Issuing.
func (m *Section) Report(u *mode.Use) string {
	u.Owns, u.Passed, u.Lapses = m.lease.owner != "", m.passes.values, m.lapses
	if u.Owns {
		u.Held = m.end - m.high
	}
	address := m.Known().Address
	if !m.Known().HasOwner() { // as far as this node knows: it need not read the record as long as its place answers
		address = m.passes.answered
	}
	return fmt.Sprintf("owner=%s term=%d lease_ms=%d passed=%d", cmp.Or(address, "-"), m.Known().Term, m.Known().HoldMs,
		u.Passed)
}

// Traced returns what a trace of a write says of how the ownership came about.
func (m *Section) Traced() []any { return []any{"ended", m.lastEnded, "since", m.watch.since.Boot} }

// traceOwner traces that the owner may issue until its lease ends. sent and now are times of AtMost, and steps are
// compared by the boot clock.
func (m *Section) traceOwner(sent, now int64) {
	if m.Trace == nil {
		return
	}
	at := m.node.elapsed.Now()
	boot := func(most int64) int64 { return at.Boot - (at.Most - most) }
	m.Trace.Step("owns", "name", m.Name, "owner", m.lease.owner, "sent", boot(sent), "now", boot(now),
		"until", boot(m.lease.until), "hold_ms", m.Known().HoldMs)
}

// Flaps reports whether the node has lost two leases in the last minute. Then others should own the sections (O9).
func (m *Section) Flaps(now int64) bool {
	return m.lapsedAt[0] != 0 && now-m.lapsedAt[0] < int64(time.Minute)
}
