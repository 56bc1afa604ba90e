package mode

import (
	"cmp"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Queue is the requests of a sequence that wait, and why the last try to get positions failed.
type Queue struct {
	// Waiting are the requests that wait. If a function takes requests out, they are woken when Mu is released, or when
	// the write has ended that answers them: see WakeAll. Only a node that stops drops them, because they have ended.
	Waiting []Request
	// refusal says why the last try to get positions failed, nil if it succeeded. It was noted at refusedAt. Until
	// noTryUntil no round tries again, and new requests get the refusal at once. Both times are ns of AtMost.
	refusal               *record.Refusal
	refusedAt, noTryUntil int64
}

// WaitOrRefuse makes a request wait, or refuses it: if no request ever gets so many values, if it has waited for a try
// that failed or for Patience, or if it is new and no try may follow yet. The bool is true if the request waits, so
// that a round must come.
func (s *Series) WaitOrRefuse(r Request, now int64, to []worker.Run) ([]worker.Run, bool, error) {
	if m := s.Issuing; m != nil {
		if refusal := m.Oversized(r.N); refusal != nil {
			return to, false, refusal
		}
	}
	since := r.Wait.Since
	if since == 0 && s.refuses(r, now) || since != 0 && s.refusal != nil && s.refusedAt >= since {
		return to, false, s.refusal
	}
	err := s.Enqueue(r, now, textPatience)
	return to, err == sequence.ErrPending, err
}

// Enqueue makes a request wait, and returns sequence.ErrPending. If the request has waited for Patience, Enqueue
// refuses it with the text late.
func (s *Series) Enqueue(r Request, now int64, late string) error {
	s.NoteWaiting(r, now)
	if now-r.Wait.Since >= int64(Patience) {
		return NoBlock(late)
	}
	s.Waiting = append(s.Waiting, r)
	return sequence.ErrPending
}

// NoteWaiting notes that a request waits from now on, unless it has begun to wait before.
func (s *Series) NoteWaiting(r Request, now int64) {
	if r.Wait.Since == 0 {
		r.Wait.Since = now
		s.Waits++
	}
}

// refuses reports whether a new request is refused at once. One with a key may have its value already, although the
// sequence is exhausted.
func (q *Queue) refuses(r Request, now int64) bool {
	return q.refusal != nil && !q.MayTry(now) && (r.Wait.Key == "" || q.refusal.Reason != record.Exhausted)
}

// HaveKeys reports whether a request with a key waits.
func (q *Queue) HaveKeys() bool {
	return slices.ContainsFunc(q.Waiting, func(r Request) bool { return r.Wait.Key != "" })
}

// Refusal returns why the last try to get positions failed, nil if it did not.
func (q *Queue) Refusal() *record.Refusal { return q.refusal }

// MayTry reports whether a round may try to get positions: it must not soon after a try that failed.
func (q *Queue) MayTry(now int64) bool { return now >= q.noTryUntil }

// Refuse makes r the refusal of the requests that wait, and of new ones until the next try. With nil, nothing is
// refused any more. The caller must wake the requests that wait.
func (q *Queue) Refuse(r *record.Refusal, now int64) {
	until := q.noTryUntil
	if r != nil {
		until = now + int64(min(cmp.Or(r.RetryAfter, time.Second), time.Second))
	}
	q.RefuseUntil(r, now, until)
}

// RefuseUntil does what Refuse does, and sets the time of the next try. Until then no round tries, even if r is nil.
func (q *Queue) RefuseUntil(r *record.Refusal, now, until int64) {
	q.refusal, q.refusedAt, q.noTryUntil = r, now, until
}

// TakeWaiting takes all requests that wait. Mu is held.
func (q *Queue) TakeWaiting() []Request {
	all := q.Waiting
	q.Waiting = nil
	return all
}

// Patience is the longest time for which a request waits.
const Patience = 5 * time.Second
