// Package mode has the types that the rounds of a node and the modes of its sequences share. A mode says how a node
// issues: from a stock of positions, after each write, or as the owner. It does no I/O: rounds read, ask for the one
// write that is due, make it, and say what came of it.
//
// The invariant: between NextWrite and Wrote, a mode gives no request a position of that write. Each method is called
// with the mutex of the sequence held.
//
// Three types to read:
//
//   - Issuing is a mode: segment, strict or ordered.
//   - Series is a mode's view of its sequence: the record as its Sequence knows it, and the Queue of requests.
//   - Write is a write that a mode wants, over the records that were read: a View.
package mode

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// Issuing is a mode of issuing one sequence, with the state that this needs. A new life of a name has a new one. The
// mutex of its sequence is held when a method is called.
type Issuing interface {
	// Serve issues the values of a request, refuses it, or makes it wait. low means that a round should come soon.
	// knewAllAt is the time at which the node last knew that nothing had changed.
	Serve(r Request, now, knewAllAt int64, to []worker.Run) (_ []worker.Run, low bool, _ error)
	// TooMany returns the refusal of a request for n values if no request ever gets so many, else nil.
	TooMany(n int64) *record.Refusal
	// Lacks reports whether requests wait that the node cannot answer without a write.
	Lacks() bool
	// Used reports whether the node takes blocks of the sequence also when nobody waits.
	Used() bool
	// Urgency returns how soon a round must work on a sequence for which nobody waits.
	Urgency(sit Situation) Urgency
	// Saw takes over what was read, after the series has taken over the record. before is the record that the series
	// knew until then.
	Saw(v View, before *record.Record, sit Situation)
	// NextWrite returns the write that is due, or nil. It takes the requests of the write out of those that wait.
	NextWrite(v View, sit Situation) *Write
	// Wrote ends a write that was sent at this time with the error err: see NotMade. It returns the requests that must
	// look again. If leaveUpTo is above 0, rounds leave the sequence to other nodes for a random part of that time.
	Wrote(t Write, v View, sent, now int64, err error) (woken []Request, leaveUpTo time.Duration)
	// Pause returns the longest pause after tries in which other nodes were faster.
	Pause(now int64) time.Duration
	// Drop drops what the node holds.
	Drop()
	// Report notes what the node holds in u, and returns it for the line of SEQ.
	Report(u *Use) string
}

// Sequence is the sequence that a mode issues. It owns what the node knows of the record, which a mode only reads. Mu of
// the Series is held when a method is called. Only WakeAt needs no mutex.
type Sequence interface {
	// Known returns the latest record that the node has read or written, nil for none.
	Known() *record.Record
	// Values returns the map of Known. A keyed one is of no use while the node does not know the key.
	Values() *sequence.Values
	// Mode returns what issues the sequence Known, nil if none is known.
	Mode() Issuing
	// KnowWritten takes over the record of a write that was made. ackedAt is when ZooKeeper acknowledged it, ns of AtMost,
	// 0 if only a later read has shown it.
	KnowWritten(w Write, ackedAt int64)
	// WakeAt makes a round look at the sequence at this time, ns of AtMost, or AtOnce.
	WakeAt(at int64)
}

// Series is the mode's view of its sequence.
type Series struct {
	// These never change. Trace may be nil.
	Name  string
	Trace coordinator.Trace
	Sequence

	Mu sync.Mutex // guards all that follows, and what the Sequence knows
	Queue
	Schedule
	Counts
	// Last has the records in ZooKeeper, if the next decision needs no read: as the last write left them or, of a
	// section that this node owns, as they were read since. Else it is nil.
	Last *View
	// Stale: the record may have changed since it was read: by an operator, or in a loss of data.
	Stale bool
}

// Queue is the requests of a sequence that wait, and why the last try to get positions failed.
type Queue struct {
	// Waiting are the requests that wait. Who takes some out wakes them when Mu is released: see WakeAll.
	Waiting []Request
	// refusal is that of the last try, nil if it has not failed, and refusedAt is the time at which that was noted.
	// Until noTryUntil no round tries again, and new requests get the refusal at once. Both times are ns of AtMost. See
	// Refuse.
	refusal               *record.Refusal
	refusedAt, noTryUntil int64
}

// Schedule says when rounds work on a sequence. Its times are ns of AtMost. Rounds and the modes set it.
type Schedule struct {
	// Conflicts is the number of rounds in a row that used up all tries.
	Conflicts int
	// PausedUntil is the time before which no round works on the sequence, whatever waits.
	PausedUntil int64
	// DueAt is the time at which a round must look at the sequence again, 0 for no time of its own.
	DueAt int64
}

// Counts has the mode's counts for the sequence.
type Counts struct {
	Totals
	// AskedAt is the time at which the node last answered a request or, of an ordered sequence, was last asked, ns of
	// AtMost.
	AskedAt int64
}

// WaitOrRefuse makes a request wait, or refuses it if it has waited for a try that failed.
func (s *Series) WaitOrRefuse(r Request, now int64, to []worker.Run) ([]worker.Run, bool, error) {
	if m := s.Mode(); m != nil {
		if refusal := m.TooMany(r.N); refusal != nil {
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

// TooMany is that of all modes but strict: no block is larger than the burst.
func (s *Series) TooMany(n int64) *record.Refusal {
	if most := s.Known().CeilingInForce().Burst(); n > most {
		return TooMany(most, ", or raise its ceiling")
	}
	return nil
}

// Enqueue makes a request wait, unless it has waited for too long. late says for what.
func (s *Series) Enqueue(r Request, now int64, late string) error {
	switch since := r.Wait.Since; {
	case since == 0:
		r.Wait.Since = now
		s.Waits++
	case now-since >= int64(Patience):
		return NoBlock(late)
	}
	s.Waiting = append(s.Waiting, r)
	return sequence.ErrPending
}

// refuses reports whether a new request is refused at once. One with a key may have its value already, although the
// sequence is exhausted.
func (q *Queue) refuses(r Request, now int64) bool {
	return q.refusal != nil && !q.MayTry(now) && (r.Wait.Key == "" || q.refusal.Reason != record.Exhausted)
}

// Refusal returns why the last try to get positions failed, nil if it did not.
func (q *Queue) Refusal() *record.Refusal { return q.refusal }

// MayTry reports whether a round may try to get positions: it must not soon after a try that failed.
func (q *Queue) MayTry(now int64) bool { return now >= q.noTryUntil }

// Refuse sets the refusal for requests that wait, and for new ones until the next try. nil: there is
// no reason to refuse.
func (q *Queue) Refuse(r *record.Refusal, now int64) {
	until := q.noTryUntil
	if r != nil {
		until = now + int64(min(cmp.Or(r.RetryAfter, time.Second), time.Second))
	}
	q.RefuseUntil(r, now, until)
}

// RefuseUntil is Refuse with the time until which no round tries, also if there is no reason to refuse.
func (q *Queue) RefuseUntil(r *record.Refusal, now, until int64) {
	q.refusal, q.refusedAt, q.noTryUntil = r, now, until
}

// TakeWaiting takes all requests that wait. Mu is held.
func (q *Queue) TakeWaiting() []Request {
	all := q.Waiting
	q.Waiting = nil
	return all
}

// Request is a request for values.
type Request struct {
	Wait *sequence.Wait // what is known of it: since when it waits, and its Result
	N    int64          // so many values
	// Whole: no other value of the sequence may lie between them.
	Whole bool
	Wake  func() // makes the caller ask again
	Name  []byte // as the client has sent it
	Lane  int    // in a section of a family
}

// Result is the sequence.Wait.Result of a request that has waited: the values of Block, or an error.
type Result struct {
	Values sequence.Values
	Block  positions.Block
	// Again: an earlier request with the same key got the values, too.
	Again bool
	Err   error
}

// Patience is how long a request waits for ZooKeeper.
const Patience = 5 * time.Second

// WakeAll wakes requests. No mutex of a sequence is held.
func WakeAll(some []Request) {
	for _, r := range some {
		r.Wake()
	}
}

// Totals counts what a series did, or several: the positions that were issued, the blocks that were taken, and the
// requests that waited.
type Totals struct{ Issued, Blocks, Waits int64 }

// Add adds o.
func (t *Totals) Add(o Totals) {
	t.Issued, t.Blocks, t.Waits = t.Issued+o.Issued, t.Blocks+o.Blocks, t.Waits+o.Waits
}

// Situation has the inputs of a decision that are not in the records.
type Situation struct {
	// AtMost and AtLeast are one moment by two clocks, ns: see timeguard.Elapsed. It is when the read of the records was
	// sent, or the present if nothing was read. A node counts how long it may still do a thing by AtMost, and how long
	// it must still wait for others by AtLeast.
	AtMost, AtLeast int64
	// SeqTime is the sequence time at that moment, ms.
	SeqTime int64
	// Unconfirmed is the time left until this node may take positions, 0 if it may.
	Unconfirmed time.Duration
	Spread      time.Duration // the shortest time between two writes of one sequence
	// Volatile: what the node holds does not outlast the process, or not a stop that releases the worker.
	Volatile  bool
	Nonce, By string // of the next write: see record.Record
	Session   int64  // the present connection to ZooKeeper
}

// mostVolatile is the longest supply of a node whose blocks do not outlast it: what is left is lost with it.
const mostVolatile = time.Minute

// Supply returns how long a block should last.
func (sit Situation) Supply(r *record.Record) time.Duration {
	if sit.Volatile {
		return min(r.Supply(), mostVolatile)
	}
	return r.Supply()
}

// View has the records that were read for a mode: /cluster, /seq and the sequence's record together, and then the
// others that it wants.
type View struct {
	record.Found
	SentAt      int64               // when the read of the record was sent, ns of AtMost
	AnsweredAt  timeguard.Moment    // when that was answered
	RequestKeys *record.RequestKeys // nil: they were not read
	MapKey      *store.Record       // nil: it was not read
}

// After returns what a write of the record of v leaves in ZooKeeper.
func (v View) After(t Write) View {
	version := v.Stat.Version + 1
	if version == store.AnyVersion { // two writes were needed: see record.SetOps
		version++
	}
	v.Record, v.Stat, v.MapKey = &t.Record, store.Stat{Version: version}, nil
	if t.RequestKeys != nil {
		v.RequestKeys = t.RequestKeys.Written()
	}
	return v
}

// Write is the write of a mode, with what the node knows of it.
type Write struct {
	record.Write
	Requests    []Request           // that it answers
	RequestKeys *record.RequestKeys // as the write leaves them, nil if it does not write them
	// Renews: the owner of an ordered sequence makes the write, in this Session. It may before the node may take
	// positions.
	Renews  bool
	Session int64
}

// Urgency says how soon a round must work on a series.
type Urgency int

// In rising order.
const (
	Idle    Urgency = iota // there is nothing to do
	Renew                  // the record must be written again
	Needed                 // a block must be taken, or the record be read
	Awaited                // requests wait
)

// ErrNotSent: a write was not sent, because the node may not take positions now.
var ErrNotSent = errors.New("the write was not sent")

// NotMade reports whether it is certain that a write was not made, although ZooKeeper can be reached.
func NotMade(err error) bool { return errors.Is(err, ErrNotSent) || store.Outpaced(err) }

// Backoff returns the longest pause after so many conflicts. If a thousand nodes ask for one name at once, each success
// of one makes all others fail, so that they must not all try again at once.
func Backoff(conflicts int) time.Duration { return 10 * time.Millisecond << min(conflicts, 7) }

// AtOnce is a time that has passed.
const AtOnce = 1

// Confirming refuses requests for this time, because ZooKeeper may have lost data.
func Confirming(left time.Duration) *record.Refusal {
	return record.Refuse(record.Confirming, left,
		"this node reached ZooKeeper a short time ago, and ZooKeeper may have lost data. Retry, or try another node")
}

// NoKeys refuses a request with a key.
func NoKeys(name string) *record.Refusal {
	return record.Refuse(record.WrongMode, 0, "keys are for strict sequences, and %s is not one. Leave the key out", name)
}

// TooMany refuses a request for more than most values. advice says what else helps.
func TooMany(most int64, advice string) *record.Refusal {
	return record.Refuse(record.TooMany, 0, "the sequence gives at most %d values at once. Ask for fewer%s", most, advice)
}

// textPatience is the reply to a request that has waited for ZooKeeper for too long.
const textPatience = "ZooKeeper did not give this node any values in time. Retry, or try another node"

// NoBlock refuses requests, because the node has no positions. why says why.
func NoBlock(why string) *record.Refusal {
	return record.Refuse(record.NoBlock, time.Second, "%s", why)
}

// Use is one sequence as a node knows it.
type Use struct {
	Name   string
	Record record.Record
	// Held is the number of values that the node has taken and not issued.
	Held int64
	// Unanswered is the number of values of a strict sequence that the node has taken, or perhaps taken, and not
	// answered. Nobody will get them, but for those that are being answered.
	Unanswered int64
	// Owns: this node is the owner of the ordered sequence. Passed is the number of values that it got from other nodes
	// since it started, and Lapses that of its leases that ended before they were renewed.
	Owns           bool
	Passed, Lapses int64
	// Block is the last block that the node has taken.
	Block positions.Block
	// PerSecond is the number of values that the node has issued in a second, over the last minute or longer.
	PerSecond float64
	// Refusal is the reason why the node gets no block at present, "" if it gets one or has not asked.
	Refusal record.Reason
}
