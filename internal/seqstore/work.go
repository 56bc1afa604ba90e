package seqstore

import (
	"time"

	"github.com/flaked/flaked/sequence"
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

// used reports whether this node has taken a block of the sequence.
func (s *series) used() bool { return s.last.Len() > 0 }

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
	case s.stale, len(s.attempts) > 0:
		return needed
	case s.known.Kind() != Sequence, !s.used(), e.sent < s.retryAt:
		return idle
	case s.short(), s.wantsMore(e.now):
		return needed
	case e.now-s.known.At >= s.renewAfter(e).Milliseconds():
		return renew
	}
	return idle
}

func (s *series) renewAfter(e situation) time.Duration {
	return renewalInterval(e.spread, time.Duration(e.sent-s.askedAt))
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
	want := s.needs()
	s.mu.Unlock()
	s.change(func() {
		s.stale, s.incarnation, s.written = false, e.incarnation, view{}
		if found == foundAbsent {
			s.vanish(e.sent)
			if e.refusal != nil {
				s.absentAt = 0
				s.refuse(e.refusal, e.sent)
			}
			return
		}
		s.absentAt = 0
		s.resolve(v)
		s.sawWriter(*v.record, e)
		s.adopt(*v.record)
		s.learnKey(v.secret)
		if v.keys != nil {
			s.keys = v.keys.entries
		}
		if s.known.Kind() == Sequence {
			t = s.next(e, want)
		}
	})
	return t, nil
}

// damaged notes that the record cannot be used. Until it can, the node issues no value of this sequence. news
// means that the node did not know it.
func (s *series) damaged(at int64) (news bool) {
	news = s.refusal == nil || s.refusal.Reason != Frozen
	s.stock.Drop()
	s.stale, s.last, s.attempts, s.written = false, sequence.Block{}, nil, view{}
	s.refuse(&Refusal{Reason: Frozen, Text: "the record of sequence " + s.name + " in ZooKeeper is damaged. Restore or remove it: " + recordPath(s.name)}, at)
	return news
}

// vanish notes that the sequence does not exist.
func (s *series) vanish(at int64) {
	s.known, s.secret, s.absentAt = nil, nil, at
	s.stock = sequence.Stock{}
	s.attempts, s.last = nil, sequence.Block{}
}

// resolve finds out which of the attempts was written. At most one was, because all were made at one
// version. If another write followed, the blocks of all attempts are lost.
func (s *series) resolve(v view) {
	if len(s.attempts) == 0 || v.stat.Version == s.tried && v.record.Nonce == s.known.Nonce {
		return // a write may still arrive: the next attempt is made at the same version
	}
	for _, t := range s.attempts {
		if t.record.Nonce == v.record.Nonce {
			s.accept(t, 0)
		}
	}
	s.attempts = nil
}

// accept takes over a write that was acknowledged, with its block.
func (s *series) accept(t taking, mono int64) {
	s.know(t.record)
	if t.keys != nil {
		s.keys = t.keys.entries
	}
	s.attempts = nil
	if t.block.Len() == 0 {
		return
	}
	s.refuse(nil, mono)
	s.conflicts = 0
	s.blocks++
	if t.record.Mode == Strict {
		return
	}
	s.last, s.lastIncarnation = t.block, t.record.Incarnation
	s.stock.Add(t.block)
}

// adopt takes over a record that was read. Another node may have written it, or an operator.
func (s *series) adopt(r Record) {
	switch {
	case s.known != nil && r.ID != s.known.ID: // its positions have nothing to do with the old ones
		s.stock, s.last = sequence.Stock{}, sequence.Block{}
	case r.Kind() == Tombstone:
		s.stock.Drop()
		s.last = sequence.Block{}
	}
	s.stock.SkipTo(r.From)
	s.know(r)
}

// know takes over a record.
func (s *series) know(r Record) {
	if s.known == nil || s.known.ID != r.ID {
		s.highest, s.secret, s.keys = 0, nil, nil
	}
	s.values = r.values(s.secret)
	s.known, s.highest = &r, max(s.highest, r.Next)
}

// next returns the write that is due now, or nil. want is what the requests need that waited.
func (s *series) next(e situation, want needs) *taking {
	if s.known.hasKey() && s.secret == nil {
		s.refuse(lostKey(s.name), e.sent)
		return nil
	}
	if e.unconfirmed > 0 {
		var refusal *Refusal
		if want.lacking {
			refusal = confirming(e.unconfirmed)
		}
		s.refuse(refusal, e.sent)
		s.retryAt = e.sent + int64(min(e.unconfirmed, time.Second))
		return nil
	}
	if s.known.Mode == Strict {
		return s.nextStrict(e)
	}
	if want.lacking || s.used() && (s.short() || s.wantsMore(e.now)) {
		c, refusal := s.known.plan(e.incarnation, s.demand(e, want.all).Size(), want.least, e.now)
		if refusal != nil {
			s.refuse(refusal.about(s.name), e.sent)
			return nil
		}
		return &taking{record: c.written(e.nonce, e.by), block: c.block}
	}
	if c, due := s.known.renewal(e.incarnation, e.now, s.renewAfter(e)); due {
		return &taking{record: c.written(e.nonce, e.by)}
	}
	return nil
}

// demand returns what the size of the next block depends on.
func (s *series) demand(e situation, need int64) sequence.Demand {
	budget := s.known.ceiling().At(s.known.budget(), e.now)
	d := sequence.Demand{
		Supply: max(s.known.supply(), e.spread), Smallest: s.known.Block, Last: s.last.Len(), Need: need, Credit: budget.Credit,
	}
	d.Rate = s.window.rate(s.issued, e.sent)
	s.window.roll(s.issued, e.sent)
	s.target = int64(min(d.Rate*d.Supply.Seconds(), sequence.MaxBlock))
	return d
}
