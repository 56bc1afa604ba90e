package seqstore

import (
	"cmp"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// series is one sequence as a node knows it. The goroutine of Round does its I/O. All fields below
// mu are guarded by it, and Round does not hold mu during I/O.
type series struct {
	name string

	mu sync.Mutex
	// known is the latest record that the node has read or written, nil for none.
	known *Record
	// highest is the highest next position that a record with this ID had.
	highest int64
	// values is the map of known. A keyed one is of no use without secret, the key of known.
	values sequence.Values
	secret *secret // nil: the node does not know it, or there is none
	stock  sequence.Stock
	// attempts are the writes with unknown outcome. All were made at the version tried.
	attempts []taking
	tried    int32
	// last is the last block that the node took, in the incarnation lastIncarnation of the sequence known.
	last            sequence.Block
	lastIncarnation int64
	// target is the number of positions that the node issues in the supply, when it last took a block.
	target int64

	waiting []request
	refusal *Refusal // of the last try to get positions
	// refusedAt is when the refusal was set, and retryAt the earliest time for another try, in
	// ns of the monotonic clock.
	refusedAt, retryAt int64
	// conflicts is the number of times in a row that another node was faster with a write. Until notBefore, in
	// ns of the monotonic clock, the node does not try again.
	conflicts int
	notBefore int64
	// writers are the other nodes that wrote a strict sequence, each with the time when this node last read it, in
	// ns of the monotonic clock.
	writers map[string]int64
	// keys are the keys of requests of the strict sequence known, as the node last read or wrote them.
	keys []keyEntry
	// absentAt is when the node found that the sequence does not exist. 0: it exists, or the
	// node has not looked.
	absentAt int64
	// askedAt is when the node last issued values, in ns of the monotonic clock.
	askedAt int64
	// issued is the number of positions that were issued, blocks that of the blocks that were taken, and waits
	// that of the requests that waited.
	issued, blocks, waits int64
	// committed is the number of positions that a strict sequence has written, answered that of those that requests
	// got, and unknown that of writes with an unknown outcome.
	committed, answered, unknown int64
	// written is the record and the state with their versions after a write of a strict sequence, until the next
	// decision. That one needs no read.
	written view
	window  window // for the rate
	stale   bool   // an operator may have changed the record since it was read
	// incarnation was that of /cluster when known was compared with ZooKeeper last. In a later incarnation, an older
	// record in ZooKeeper belongs to the loss for which the incarnation was raised, and the node puts its own back. In the
	// same one it shows a loss.
	incarnation int64
	forgotten   bool // the Issuer has removed the series
	queued      bool // it is among those that need work soon: see catalog.next
}

// taking is a write that takes a block. requests are those of a strict sequence that share it.
type taking struct {
	record   Record
	block    sequence.Block
	requests []request
	keys     *keyring // as the write leaves them, nil if it does not write them
}

// request is a request for values.
type request struct {
	w     *sequence.Wait
	n     int64
	whole bool
	wake  func()
}

// patience is how long a request waits for ZooKeeper.
const patience = 5 * time.Second

// take issues the values of a request, or refuses it, or makes it wait. low means that Round should
// be called soon. readAt is when the node last knew that nothing had changed.
func (s *series) take(r request, now, readAt int64, to []worker.Run) (_ []worker.Run, low bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.forgotten:
		return to, false, errForgotten
	case s.absent(now), s.known.Kind() == Template, s.known.Kind() == Tombstone:
		return to, false, noSequence(s.name)
	case r.whole && s.known != nil && s.known.Keyed():
		return to, false, wrongMode(s.name)
	case s.known != nil && s.known.Mode == Strict:
		return s.takeStrict(r, now, to)
	case s.known != nil && r.w.Key != "":
		return to, false, &Refusal{Reason: WrongMode, Text: "keys are for strict sequences, and " + s.name + " is not one. Leave the key out"}
	case s.known == nil || len(s.waiting) > 0 && r.w.Since == 0: // no request overtakes those that wait
		return s.wait(r, now, to)
	case now-readAt >= int64(s.known.hold()):
		s.refuse(&Refusal{Reason: NoBlock, Text: "ZooKeeper has not been reached for longer than this sequence allows. Retry when it is back", RetryAfter: time.Second}, now)
		return s.wait(r, now, to)
	}
	to, ok := s.issue(r, to)
	if !ok {
		return s.wait(r, now, to)
	}
	s.issued += r.n
	s.askedAt = now
	return to, now >= s.retryAt && s.short(), nil
}

// errForgotten: the Issuer has removed the series, so nobody would serve a request that waits there.
var errForgotten = errors.New("the series is forgotten")

// forget reports whether the Issuer must remove the series: it has no record, nobody waits, and the node need
// not read it.
func (s *series) forget(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	absent := s.absentAt == 0 || now-s.absentAt >= int64(absentFor)
	s.forgotten = s.known == nil && absent && !s.stale && len(s.waiting) == 0
	return s.forgotten
}

// absent reports whether the node has looked a short time ago, and found no sequence.
func (s *series) absent(now int64) bool {
	return s.known == nil && s.absentAt != 0 && now-s.absentAt < int64(absentFor)
}

// issue appends the values of a request to to, if the stock has them.
func (s *series) issue(r request, to []worker.Run) ([]worker.Run, bool) {
	if r.whole {
		b, ok := s.stock.TakeWhole(r.n)
		if ok {
			to = appendRuns(to, &s.values, b)
		}
		return to, ok
	}
	var room [4]sequence.Block
	blocks, ok := s.stock.Take(r.n, room[:0])
	for _, b := range blocks {
		to = appendRuns(to, &s.values, b)
	}
	return to, ok
}

// wait makes a request wait, or refuses it if it has waited for a try that failed.
func (s *series) wait(r request, now int64, to []worker.Run) ([]worker.Run, bool, error) {
	switch since := r.w.Since; {
	case s.known != nil && r.n > s.known.mostAtOnce():
		return to, false, s.known.tooMany().about(s.name)
	case since == 0 && s.refuses(r, now):
		return to, false, s.refusal
	case since == 0:
		r.w.Since = now
		s.waits++
	case s.refusal != nil && s.refusedAt >= since:
		return to, false, s.refusal
	case now-since >= int64(patience):
		return to, false, &Refusal{Reason: NoBlock, Text: "ZooKeeper did not give this node any values in time. Retry, or try another node", RetryAfter: time.Second}
	}
	s.waiting = append(s.waiting, r)
	return to, true, sequence.ErrPending
}

// refuses reports whether a new request is refused at once. One with a key may have its value already, although the
// sequence is exhausted.
func (s *series) refuses(r request, now int64) bool {
	return s.refusal != nil && now < s.retryAt && (r.w.Key == "" || s.refusal.Reason != Exhausted)
}

// refuse sets the refusal for requests that wait, and for new ones until the next try. nil: there is
// no reason to refuse.
func (s *series) refuse(r *Refusal, now int64) {
	if s.refusal, s.refusedAt = r, now; r != nil {
		s.retryAt = now + int64(min(cmp.Or(r.RetryAfter, time.Second), time.Second))
	}
}

// needs is what the requests that wait need.
type needs struct {
	// all is the positions that they ask for together.
	all int64
	// least is the smallest block with which the node can serve one of them. It is 1 if nobody waits.
	least int64
	// lacking: the stock does not have enough for all of them.
	lacking bool
}

// needs returns what the requests that wait need.
func (s *series) needs() needs {
	left, longest := s.stock.Left(), s.stock.Longest()
	q := needs{least: math.MaxInt64}
	for _, r := range s.waiting {
		q.all += r.n
		if r.whole {
			q.least = min(q.least, r.n)
			q.lacking = q.lacking || r.n > longest
		} else {
			q.least = min(q.least, r.n-left)
		}
	}
	q.lacking = q.lacking || q.all > left
	if len(s.waiting) == 0 {
		q.least = 1
	}
	q.least = max(q.least, 1)
	return q
}

// short reports whether the node should take a block: a tenth of the last one is used, and there is
// no other one in reserve.
func (s *series) short() bool { return s.stock.Left() < nineTenths(s.last.Len()) }

// wantsMore reports whether the node has less than it issues in the supply, although it is not short: a block is
// smaller than that, because it is a quarter of the credit at most. It takes another one only if half of the burst
// may be taken, so that other nodes find some. now is a sequence time.
func (s *series) wantsMore(now int64) bool {
	c := s.known.ceiling()
	return s.stock.Left() < nineTenths(s.target) && c.At(s.known.budget(), now).Credit >= c.Burst()/2
}

func nineTenths(n int64) int64 { return n - n/10 }

func noSequence(name string) *Refusal {
	return &Refusal{Reason: NoSequence, Text: "there is no sequence " + name + ". Create it: flaked seq create " + name}
}
