package seqstore

import (
	"time"
)

// This file decides what a round does with a series. It does no I/O.

// situation has the inputs of a decision that are not in the records.
type situation struct {
	incarnation int64 // of /cluster
	sent        int64 // when the read of the records was sent, ns of the monotonic clock
	now         int64 // the sequence time, ms
	// unconfirmed is the time left until this node may write: see Issuer.unconfirmed.
	unconfirmed time.Duration
	spread      time.Duration // see the function spread
	// refusal is why no template creates a sequence that does not exist. nil: there is no template.
	refusal   *Refusal
	nonce, by string
	// keys are those of a strict sequence. nil: they were not read, because no request with a key waited.
	keys *keyring
}

// urgency says how soon a round must work on a series.
type urgency int

const (
	idle    urgency = iota // there is nothing to do
	renew                  // the record must be written again
	needed                 // a block must be taken, or the record be read
	awaited                // requests wait
)

// urgency returns how soon a round must work on the series. e.sent is the present time.
func (s *series) urgency(e situation) urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.sent < s.notBefore:
		return idle
	case len(s.waiting) > 0:
		return awaited
	case s.stale, s.mode != nil && s.mode.unsure():
		return needed
	case s.known.Kind() != Sequence, e.sent < s.retryAt:
		return idle
	}
	return s.mode.urgency(e)
}

func (s *series) isStale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale
}

// change calls f while it holds mu, and wakes the requests that wait. They look at the series again.
func (s *series) change(f func()) {
	s.mu.Lock()
	f()
	waiting := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for _, r := range waiting {
		r.wake()
	}
}

// decide takes over what was read, and returns the write that is due, or nil for none. It returns a
// *lostError if the record shows that ZooKeeper has lost data.
func (s *series) decide(v view, e situation) (t *taking, err error) {
	s.mu.Lock()
	found := judge(v.record, s.known, v.state.Purged)
	if found == foundLost {
		s.mu.Unlock()
		return nil, &lostError{reason: "the record of sequence " + s.name + " is missing, or older than before"}
	}
	s.mu.Unlock()
	s.change(func() {
		s.stale, s.incarnation = false, e.incarnation
		if found == foundAbsent {
			s.vanish(e.sent)
			if e.refusal != nil {
				s.absentAt = 0
				s.refuse(e.refusal, e.sent)
			}
			return
		}
		s.absentAt = 0
		if s.mode != nil {
			s.mode.resolve(v)
		}
		s.know(*v.record)
		s.mode.saw(v, e)
		s.learnKey(v.secret)
		switch s.known.Kind() {
		case Sequence:
			t = s.next(e)
		case Tombstone:
			s.mode.drop()
		}
	})
	return t, nil
}

// damaged notes that the record cannot be used. Until it can, the node issues no value of this sequence. news
// means that the node did not know it.
func (s *series) damaged(at int64) (news bool) {
	news = s.refusal == nil || s.refusal.Reason != Frozen
	if s.stale = false; s.mode != nil {
		s.mode.drop()
	}
	s.refuse(&Refusal{Reason: Frozen, Text: "the record of sequence " + s.name + " in ZooKeeper is damaged. Restore or remove it: " + recordPath(s.name)}, at)
	return news
}

// vanish notes that the sequence does not exist.
func (s *series) vanish(at int64) {
	s.known, s.secret, s.mode, s.absentAt = nil, nil, nil, at
}

// know takes over a record. Another node may have written it, or an operator.
func (s *series) know(r Record) {
	if s.known == nil || s.known.ID != r.ID { // its positions have nothing to do with the old ones
		s.highest, s.secret, s.mode = 0, nil, newMode(s, r.Mode)
	}
	s.values = r.values(s.secret)
	s.known, s.highest = &r, max(s.highest, r.Next)
}

// accept takes over a write that was acknowledged.
func (s *series) accept(t taking, mono int64) {
	if s.know(t.record); t.block.Len() > 0 {
		s.refuse(nil, mono)
		s.conflicts = 0
		s.blocks++
	}
}

// next returns the write that is due now, or nil.
func (s *series) next(e situation) *taking {
	if s.known.hasKey() && s.secret == nil {
		s.refuse(lostKey(s.name), e.sent)
		return nil
	}
	if e.unconfirmed > 0 {
		var refusal *Refusal
		if len(s.waiting) > 0 {
			refusal = confirming(e.unconfirmed)
		}
		s.refuse(refusal, e.sent)
		s.retryAt = e.sent + int64(min(e.unconfirmed, time.Second))
		return nil
	}
	return s.mode.next(e)
}
