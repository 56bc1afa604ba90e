package seq

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/worker"
)

// ordered is the ordered mode. One node at a time, the owner, issues from memory; the others pass requests on to it. A
// plain sequence is one section with one lane. A family has more of both.
//
// The invariant: blocks are taken like those of a segment sequence, so no value comes twice, whatever clocks do (O1).
// And while a node issues, no other node has issued anything from a later block: its lease has not ended (O2), and
// nobody takes the section over before (O4). So a request that is sent after another was answered gets a higher value.
type ordered struct {
	*base
	node  *relay
	lease lease
	// ended is the nonce of the last ownership that this process has ended.
	ended string
	watch watch

	counters // what the owner may issue

	// lapses counts the leases that ended before they were renewed. lapsed is when the last two did.
	lapses int64
	lapsed [2]int64
	passes passes
	// staysUntil: the node has taken the section although its place is at another one, and keeps it until then.
	staysUntil int64
}

func newOrdered(s *base, node *relay) *ordered {
	node.inUse.Store(true)
	return &ordered{base: s, node: node}
}

// idleAfter is the time without a request after which the owner gives the section back. Else a name that nobody uses
// would be written for ever.
const idleAfter = time.Minute

func (m *ordered) serve(r request, _, _ int64, to []worker.Run) (_ []worker.Run, low bool, _ error) {
	now := m.node.now() // (O2): that of the other modes may be late
	if got, ok := r.w.Result.(*result); ok {
		if r.w.Result = nil; got.err != nil {
			return to, false, got.err
		}
		m.passes.values += got.block.Len()
		return appendRuns(to, &got.values, got.block), false, nil
	}
	if r.w.Key != "" {
		return to, false, noKeys(string(r.name))
	}
	if valid := m.lease.valid(now); valid && r.w.Passed != nil && !m.isAskedFor(r.w.Passed) {
		return to, false, notOwner(m.name)
	} else if m.askedAt = now; valid {
		p, ok := m.issue(r.lane, r.n)
		if !ok {
			return m.wait(r, now, to)
		}
		m.issued += r.n
		r.w.Owner = m.lease.owner
		return appendRuns(to, &m.values, positions.Block{First: p, End: p + r.n}), m.low() && now >= m.retryAt, nil
	}
	if m.lease.owner != "" && !m.lease.ending {
		m.lapse(now)
	}
	switch {
	case r.w.Since != 0 && now-r.w.Since >= int64(patience) && m.ownedByAnother():
		return to, false, noOwner(m.name, m.known.Address, m.known.Address == m.node.own, m.passes.why)
	//mutant:o10-passed-on-twice by TestRequestIsPassedOnOnce -> case !m.stale && m.target(now) != "":
	case !m.stale && r.w.Passed == nil && m.target(now) != "": // a request is passed on once (O10)
		return m.pass(r, now, to)
	}
	return m.wait(r, now, to)
}

// lapse ends an ownership whose lease has ended. What it held is dropped (O5): another node may have issued later
// positions, although ZooKeeper shows nothing of it any more.
func (m *ordered) lapse(now int64) {
	m.lapses++
	m.lapsed = [2]int64{m.lapsed[1], now}
	m.endLease()
}

func (m *ordered) endLease() {
	if m.lease.owner != "" {
		m.trace.Step("disowns", "name", m.name, "owner", m.lease.owner)
	}
	m.ended, m.lease, m.last = m.lease.owner, lease{}, sight{}
}

// lacks does not count requests that can be passed on.
func (m *ordered) lacks() bool {
	return len(m.waiting) > 0 && (m.leased() || m.target(m.node.now()) == "" || m.passedOn())
}

// passedOn reports whether a request waits that another node has passed on to this one.
func (m *ordered) passedOn() bool {
	return slices.ContainsFunc(m.waiting, func(r request) bool { return r.w.Passed != nil && r.w.Result == nil })
}

// leasedIn reports whether the node is the owner, and ZooKeeper has what it goes by in this session.
func (m *ordered) leasedIn(session int64) bool { return m.leased() && m.lease.session == session }

// until returns when the owner must stop issuing, ns of AtMost.
func (m *ordered) until() int64 { return m.lease.until }

// slowAt returns when a round must look whether another node has answered, ns of AtMost, 0 if it need not.
func (m *ordered) slowAt() int64 { return m.passes.slowAt() }

func (m *ordered) used() bool { return m.leased() }

func (m *ordered) leased() bool { return m.lease.owner != "" }

func (m *ordered) drop() { m.endLease() }

// pause is short for the owner: its lease ends.
func (m *ordered) pause(int64) time.Duration {
	if m.leased() {
		return backoff(0)
	}
	return backoff(m.conflicts)
}

func (m *ordered) urgency(e situation) urgency {
	switch {
	case m.slow(e.sent), m.passes.doubted() && e.sent >= m.lookAt, m.lease.owner != "" && m.renewalDue(e.sent):
		return needed
	}
	return idle
}

// renewalDue reports whether the owner must write the record, or give the section back.
func (m *ordered) renewalDue(now int64) bool {
	return m.lease.ending || m.node.leaves() || m.low() || m.lease.mayRenew(now, m.known.Hold())
}

// saw takes over what was read.
func (m *ordered) saw(v sight, before *record.Record, e situation) {
	m.watch.see(v, e.session)
	switch {
	case m.lease.owner == "":
	//mutant:o5-block-kept by TestRenewalAfterTheEndIsANewOwnership -> case false:
	case e.sent >= m.lease.until:
		m.lapse(e.sent)
	//mutant:o8-replaced by TestOwnerReadsThatItIsReplaced -> case false:
	case !m.lease.survives(v): // another node owns it, or what was held is of an earlier incarnation (O8)
		m.endLease()
	default:
		m.lease.session, m.last = e.session, v // the renewal checks the versions of v, which was not read at one moment
		m.skipTo(v.Record.From)
	}
	if before == nil || before.Nonce != v.Record.Nonce { // the owner lives, or there is another one
		m.passes.suspect = ""
	}
	if m.passes.leaveBehind(v.Record); v.Record.Owner != "" {
		m.passes.answered = ""
	}
}

// nextWrite returns the write that is due: a renewal with more positions or without, one that takes the section, or one
// that gives it back.
func (m *ordered) nextWrite(v sight, e situation) *blockWrite {
	if m.lease.owner == "" {
		return m.take(v, e)
	}
	if m.slow(e.sent) {
		m.passes.giveUp()
	}
	d := m.known.Hold()
	m.lookAt = renewAt(m.lease.sent, d)
	if e.unconfirmed == 0 && (m.lease.ending || m.endsNow(e)) {
		m.lease.ending, m.lookAt = true, 0
		return m.giveBack(v, e)
	}
	due := m.lease.mayRenew(e.sent, d)
	if w := m.extension(v, e, due); w != nil {
		return m.renewal(*w, e)
	}
	if due {
		return m.renewal(record.Write{Record: m.known.Renewed(e.now)}, e)
	}
	return nil
}

// extension returns the write that takes more positions, nil if none are needed or the node gets none.
func (m *ordered) extension(v sight, e situation, due bool) *record.Write {
	if len(m.waiting) == 0 && !m.low() && !(due && m.usedThird()) {
		return nil
	}
	refusal := confirming(e.unconfirmed)
	//mutant:o7-takes-unconfirmed by TestOwnerRenewsBeforeItMayTake -> if true {
	if e.unconfirmed == 0 {
		want, need := m.want(m.known.Next, time.Duration(e.sent-m.lease.sent), m.known.Block, m.waiting)
		var w record.Write
		if w, refusal = m.known.Plan(v.Incarnation(), want, need, e.now); refusal == nil {
			return &w
		}
	}
	if m.lowAt = m.end; len(m.waiting) > 0 {
		m.refuse(refusal, e.sent)
	}
	return nil
}

// renewal makes a write keep the ownership.
func (m *ordered) renewal(w record.Write, e situation) *blockWrite {
	w.Record.Owner = m.lease.owner
	return &blockWrite{Write: w, session: e.session, renews: true}
}

// endsNow reports whether the owner should give the section back: nobody asks, the node gives all away, or the section
// has its place at another node. The latter uses up a move, so the caller must give it back then.
func (m *ordered) endsNow(e situation) bool {
	return e.sent-m.askedAt > int64(idleAfter) || m.node.leaves() || e.sent >= m.staysUntil && m.node.takeMove(m.name)
}

// giveBack returns the write that leaves the section without an owner (O6). It returns the positions that no lane has
// issued, so that the next owner goes on without a gap.
func (m *ordered) giveBack(v sight, e situation) *blockWrite {
	r := m.known.Renewed(e.now)
	//mutant:o6-next-too-low by TestStoppedOwnerLeavesNoGap -> rest := record.Remainder{ID: r.ID, Incarnation: r.Incarnation, Block: positions.Block{First: m.first, End: m.end}}
	rest := record.Remainder{ID: r.ID, Incarnation: r.Incarnation, Block: m.rest()}
	if lower, possible := r.ReturnOf(rest, v.Incarnation()); possible {
		r = lower
	}
	r.Owner, r.Address, r.OwnedAt = "", "", 0
	return &blockWrite{Write: record.Write{Record: r}, session: e.session, renews: true}
}

// take returns the write that makes this node the owner, if requests need that and nobody else may be the owner.
func (m *ordered) take(v sight, e situation) *blockWrite {
	if m.slow(e.sent) {
		m.doubt(m.passes.flight, errSilent)
		m.passes.leaveBehind(m.known)
	}
	m.refusePassed(func(r request) bool { return !m.mayBecome(r.w.Passed) })
	//mutant:o4-at-most by TestOwnerAndBootClocksAtAnyRate -> wait := m.watch.freeIn(v, m.ended, e.sent)
	wait := m.watch.freeIn(v, m.ended, e.least)
	if m.known.Owner == "" && m.node.place(m.name) != m.node.own {
		m.refusePassed(nil) // another node is asked next
	}
	switch {
	case len(m.waiting) == 0 && !m.passes.doubted(), !m.passedOn() && m.target(e.sent) != "":
		return nil
	case wait > 0 || m.node.leaves():
		if m.known.Address != m.node.own || m.node.leaves() { // else the last process of this node was the owner
			m.refusePassed(nil)
		}
		// A request that comes meanwhile waits until then, so that is soon, also with a long lease.
		m.lookAt = e.sent + int64(min(max(wait, leavesFor), m.known.Hold()/6, time.Second))
		m.notBefore = m.lookAt
		return nil
	}
	all, need := int64(0), int64(math.MaxInt64)
	for _, r := range m.waiting {
		all, need = all+r.n, min(need, r.n)
	}
	if len(m.waiting) == 0 {
		need = 1
	}
	w, refusal := m.known.Plan(v.Incarnation(), max(all, m.known.Block), need, e.now)
	if refusal != nil {
		m.refuse(refusal, e.sent)
		return nil
	}
	w.Record.Owner, w.Record.Term = e.nonce, w.Record.Term+1
	w.Record.Address, w.Record.OwnedAt = m.node.own, m.node.elapsed.Now().Wall/1e6
	return &blockWrite{Write: w, session: e.session}
}

// leavesFor is the time after which a node that leaves looks again whether others can answer what it cannot.
const leavesFor = 50 * time.Millisecond

// refusePassed refuses requests that other nodes have passed on to this one, which is not the owner: those that which
// chooses. nil: all.
func (m *ordered) refusePassed(which func(request) bool) {
	for _, r := range m.waiting {
		if r.w.Passed != nil && (which == nil || which(r)) {
			r.w.Result = &result{err: notOwner(m.name)}
		}
	}
}

// wrote ends a write. One with unknown outcome ends the ownership: what is left of it is dropped (O3).
func (m *ordered) wrote(t blockWrite, v sight, sent, now int64, err error) (woken []request, pause time.Duration) {
	switch {
	case err == nil:
		m.accept(t, v, sent, now)
	case notMade(err):
		return nil, 0
	//mutant:o3-unknown-outcome by TestUnknownRenewalEndsTheOwnership -> case m.lease.owner != "": m.accept(t, v, sent, now)
	default:
		if t.Record.Owner != "" { // it may have been written: freeIn must know that it has ended
			m.lease.owner = t.Record.Owner
		}
		m.endLease()
	}
	return m.takeWaiting(), 0
}

func (m *ordered) accept(t blockWrite, v sight, sent, now int64) {
	m.keeper.knowWritten(t, now)
	switch owner := t.Record.Owner; {
	case owner == "":
		m.endLease()
		return
	case t.renews && owner != m.lease.owner: // a request has found meanwhile that the lease had ended
		return
	case owner != m.lease.owner: // a new ownership
		m.begin(t.Block)
		if m.node.place(m.name) != m.node.own {
			m.staysUntil = now + int64(time.Minute)
		}
	//mutant:o5-block-kept -> case false:
	case now >= m.lease.until: // a renewal after the end of the lease ends the ownership (O5)
		m.lapse(now)
		return
	default:
		m.add(t.Block)
	}
	m.lease, m.last = newLease(t, sent), v.after(t)
	m.traceOwner(sent, now)
	m.counters.wrote()
	m.conflicts, m.lookAt = 0, renewAt(sent, m.known.Hold())
	if m.passes.suspect = ""; m.passes.doubted() {
		m.passes.giveUp()
	}
}

func (m *ordered) report(u *Use) string {
	u.Owns, u.Passed, u.Lapses = m.lease.owner != "", m.passes.values, m.lapses
	if u.Owns {
		u.Held = m.end - m.high
	}
	address := m.known.Address
	if !m.known.HasOwner() { // as far as this node knows: it need not read the record as long as its place answers
		address = m.passes.answered
	}
	return fmt.Sprintf("owner=%s term=%d lease_ms=%d passed=%d", cmp.Or(address, "-"), m.known.Term, m.known.HoldMs,
		u.Passed)
}

// traced returns what a trace of a write says of how the ownership came about.
func (m *ordered) traced() []any { return []any{"ended", m.ended, "since", m.watch.since.Boot} }

// traceOwner traces that the owner may issue until its lease ends. sent and now are times of AtMost, and steps are
// compared by the boot clock.
func (m *ordered) traceOwner(sent, now int64) {
	if m.trace == nil {
		return
	}
	at := m.node.elapsed.Now()
	boot := func(most int64) int64 { return at.Boot - (at.Most - most) }
	m.trace.Step("owns", "name", m.name, "owner", m.lease.owner, "sent", boot(sent), "now", boot(now),
		"until", boot(m.lease.until), "hold_ms", m.known.HoldMs)
}
