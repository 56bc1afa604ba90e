package seq

import (
	"errors"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/seq/strict"
	"github.com/flaked/flaked/sequence"
)

// series is one sequence as a node knows it. The goroutines of a round do its I/O, and do not hold Mu
// meanwhile.
type series struct {
	mode.Series
	*shares

	forgotten      atomic.Bool // see expire
	journalChanged atomic.Bool // it is in journal.changed
	// alarm is guarded by the mutex of alarms. rung: it is in agenda.rung. workedIn is the number of the last round
	// that has worked on it. Only a round uses these two.
	alarm    alarm
	rung     bool
	workedIn int64

	// Mu guards all that follows.

	// highest is the highest next position that a record with this ID had.
	highest int64
	mapKey  *mapKey // of Known. nil: the node does not know it, or there is none
	// foundAbsentAt is the time at which the node found that the sequence does not exist, or that no template creates
	// it, ns of AtMost. longAgoNs: it exists, or the node has not looked.
	foundAbsentAt int64
	// incarnation was that of /cluster when Known was compared with ZooKeeper last. In a later incarnation, an older
	// record in ZooKeeper belongs to the loss for which the incarnation was raised, and the node puts its own back. In
	// the same one it shows a loss.
	incarnation int64
	// recordReadAt is the time at which the record was last read, ns of AtMost, longAgoNs for never.
	recordReadAt int64
	// kept has the positions that an earlier process held, until restock gives them to the mode. journaled has the same
	// positions, until the record was compared with them (S35).
	kept, journaled *held
}

// rejects returns the error with which the series refuses a request in every mode: nil if it serves the request, or has
// yet to be read. Mu is held.
func (s *series) rejects(r mode.Request, now int64) error {
	switch {
	case s.forgotten.Load():
		return errForgotten
	case r.Wait.Passed != nil && (s.absent(now) || !s.concerns(r.Wait.Passed)):
		return ordered.NotOwner(s.Name)
	case s.absent(now), s.Known != nil && s.Known.Kind() != record.Sequence:
		return noSequence(s.Name)
	case r.Whole && s.Known != nil && s.Known.Keyed():
		return noRange(s.Name)
	}
	return nil
}

// errForgotten: the Issuer removes the series or has removed it, so nobody would serve a request that waits there.
var errForgotten = errors.New("the series is forgotten")

// expire reports whether the Issuer must remove the series: it has no record, nobody waits, and the node need
// not read it. If so, it marks the series as forgotten, and requests must look for another one.
func (s *series) expire(now int64) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	findingOld := now-s.foundAbsentAt >= int64(absentFor)
	gone := s.Known == nil && findingOld && !s.Stale && len(s.Waiting) == 0
	s.forgotten.Store(gone)
	return gone
}

// markStale notes that the record must be read. If the node knows none, it reads only if it was told of the name.
func (s *series) markStale(told bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Stale = s.Stale || told || s.Known != nil
}

func (s *series) isStale() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Stale
}

// change calls f while it holds Mu, and wakes the requests that wait. They look at the series again.
func (s *series) change(f func()) {
	s.Mu.Lock()
	f()
	waiting := s.TakeWaiting()
	s.Mu.Unlock()
	mode.WakeAll(waiting)
}

// wakeWaiting makes the requests that wait look at the series again.
func (s *series) wakeWaiting() { s.change(func() {}) }

// absent reports whether the node has looked a short time ago, and found no sequence.
func (s *series) absent(now int64) bool {
	return s.Known == nil && now-s.foundAbsentAt < int64(absentFor)
}

// absentFor is the time for which a node believes that a sequence does not exist.
const absentFor = 2 * time.Second

// drop drops the positions that the node holds, if any. Mu is held.
func (s *series) drop() {
	s.Last = nil
	if s.Issuing != nil {
		s.Issuing.Drop()
	}
}

// freeze notes that the record cannot be used. Until it can, the node issues no value of this sequence. news
// means that the series was not frozen before. Mu is held.
func (s *series) freeze(r *record.Refusal, at int64) (news bool) {
	news = s.Refusal().Why() != record.Frozen
	s.Stale = false
	s.drop()
	s.Refuse(r, at)
	return news
}

// clearRecord notes that the sequence does not exist. Mu is held.
func (s *series) clearRecord(at int64) {
	if s.Known != nil || s.kept != nil { // not for each name that somebody asks for
		//mutant:s30-keeps-what-was-forgotten by TestWhatIsGivenUpLeavesTheJournal ->
		s.journal.wake(s, false)
	}
	s.Known, s.mapKey, s.Issuing, s.kept, s.journaled = nil, nil, nil, nil, nil
	s.Last, s.foundAbsentAt = nil, at
	s.families.update(s.Name, nil)
}

// setRecord sets the record that the node knows. Another node may have written it, or an operator. Mu is held.
func (s *series) setRecord(r record.Record) {
	if s.Known == nil || s.Known.ID != r.ID { // its positions have nothing to do with the old ones
		s.highest, s.mapKey, s.Issuing = 0, nil, s.newMode(r.Mode)
		//mutant:s30-keeps-another-life by TestWhatIsGivenUpLeavesTheJournal ->
		s.journal.wake(s, false)
	}
	s.Last = nil
	s.Values = s.mapKey.valuesOf(r)
	s.Known, s.highest = &r, max(s.highest, r.Next)
	s.families.update(s.Name, &r)
	s.restock()
}

// KnowWritten sets the record that the node knows to that of a write that was made. The caller, a mode, adds the block
// to what it holds.
func (s *series) KnowWritten(w mode.Write, ackedAt int64) {
	s.traceBlock(w)
	s.setRecord(w.Record)
	if w.Block.Len() > 0 {
		s.Refuse(nil, ackedAt)
		s.FailedRounds = 0
		s.Blocks++
	}
}

// WakeAt makes a round look at the series at this time.
func (s *series) WakeAt(at int64) { s.alarms.wakeAt(s, at) }

// newMode returns the mode of a series whose record the node did not know until now.
func (s *series) newMode(m record.Mode) mode.Issuing {
	switch m {
	case record.Strict:
		return strict.New(&s.Series, s.ordered.Now)
	case record.Ordered:
		return ordered.NewSection(&s.Series, s.ordered)
	}
	return newSegment(s)
}

// stocked returns the mode if it holds positions in memory, which the journal keeps. nil: it has another one.
func (s *series) stocked() *segment {
	m, _ := s.Issuing.(*segment)
	return m
}

// owned returns the mode if this node is the owner of the sequence, else nil.
func (s *series) owned() *ordered.Section {
	if m, ok := s.Issuing.(*ordered.Section); ok && m.Owns() {
		return m
	}
	return nil
}

// requestKeys returns those of a strict sequence, as the node last read or wrote them. Another mode has none.
func (s *series) requestKeys() []record.KeyEntry {
	if m, ok := s.Issuing.(*strict.Strict); ok {
		return m.RequestKeys
	}
	return nil
}

// concerns reports whether a request that was forwarded is about this life of the name.
func (s *series) concerns(of *sequence.Ownership) bool {
	//mutant:o10-any-life by TestPassedRequestNamesTheLifeOfTheName -> return true
	return s.Known == nil || s.Known.Kind() == record.Sequence && s.Known.ID == of.ID && s.Known.Mode == record.Ordered
}

// traceBlock traces a block that is the node's from now on. Mu is held.
func (s *series) traceBlock(w mode.Write) {
	if w.Block.Len() > 0 && w.Record.Mode != record.Strict {
		s.Trace.Step("block", "name", s.Name, "id", w.Record.ID, "inc", w.Record.Incarnation,
			"first", w.Block.First, "end", w.Block.End, "nonce", w.Record.Nonce)
	}
}
