package seq

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// series is one sequence as a node knows it. The goroutine of Round does its I/O, and does not hold mu meanwhile.
type series struct {
	base
	// These never change. journal keeps the stock over a restart, nil for none. relay and families are those of the
	// node, and ring is Issuer.wakeAt.
	journal  *journal
	relay    *relay
	families *families
	ring     func(s *series, at int64)

	forgotten atomic.Bool // see forget
	// alarm is guarded by the mutex of alarms. rung: it is in Rounds.rung. Only the goroutine of Round uses that.
	alarm alarm
	rung  bool

	// highest is the highest next position that a record with this ID had. mu guards it, and all that follows.
	highest int64
	secret  *secret // the key of known. nil: the node does not know it, or there is none
	// keys are those of requests of a strict sequence, as the node last read or wrote them.
	keys []record.KeyEntry
	// absentAt is when the node found that the sequence does not exist, or that no template creates it. 0: it exists,
	// or the node has not looked.
	absentAt int64
	// unanswered is the number of positions that writes for requests took, or perhaps took, and no request got. Like
	// totals it counts all lives of the name.
	unanswered int64
	window     window // for the rate
	// incarnation was that of /cluster when known was compared with ZooKeeper last. In a later incarnation, an older
	// record in ZooKeeper belongs to the loss for which the incarnation was raised, and the node puts its own back. In
	// the same one it shows a loss.
	incarnation int64
	// readAt is when the record was last read, ns of AtMost, longAgoNs for never.
	readAt int64
	// kept is what an earlier process held, until known is of the same life. journaled is the same, until the record
	// was compared with it.
	kept, journaled *held
}

// base is what the mode of a sequence sees of it: the record as the node knows it, and the requests that wait.
type base struct {
	// These never change. keeper is the sequence itself.
	name   string
	trace  coordinator.Trace
	keeper keeper

	mu sync.Mutex // guards all that follows
	// known is the latest record that the node has read or written, nil for none.
	known *record.Record
	// values is the map of known. A keyed one is of no use while the node does not know the key.
	values sequence.Values
	// mode issues the sequence known. nil if none is known.
	mode mode
	// last is what ZooKeeper has, if the next decision needs no read: what the last write left or, of a section that
	// this node owns, what was read since. Else it is the zero value.
	last sight
	// stale: the record may have changed since it was read: by an operator, or in a loss of data.
	stale bool

	// waiting are the requests that wait. Who takes some out wakes them when mu is released.
	waiting []request
	refusal *record.Refusal // of the last try to get positions
	// refusedAt is when the refusal was set, and retryAt the earliest time for another try, in
	// ns of AtMost.
	refusedAt, retryAt int64
	// conflicts is the number of rounds in a row that used up all tries. Until notBefore, in ns of AtMost, the node does
	// not try again.
	conflicts int
	notBefore int64
	// lookAt is when a round must look at the sequence again, ns of AtMost, 0 for no time of its own.
	lookAt int64
	// askedAt is when the node last issued values, in ns of AtMost.
	askedAt int64
	totals
}

// keeper is what a mode asks of the sequence that it issues.
type keeper interface {
	// knowWritten takes over the record of a write that was acknowledged at this time, ns of AtMost. mu is held.
	knowWritten(t blockWrite, now int64)
	// wakeAt makes a round look at the sequence at this time, ns of AtMost: soon for at once.
	wakeAt(at int64)
}

// request is a request for values.
type request struct {
	w     *sequence.Wait
	n     int64
	whole bool
	wake  func()
	name  []byte
	lane  int // in a section of a family
}

// result is the sequence.Wait.Result of a request that has waited: the values of block, or an error.
type result struct {
	values sequence.Values
	block  positions.Block
	// again: an earlier request with the same key got the values, too.
	again bool
	err   error
}

// patience is how long a request waits for ZooKeeper.
const patience = 5 * time.Second

// serve issues the values of a request, refuses it, or makes it wait: see mode.
func (s *series) serve(r request, now, readAt int64, to []worker.Run) (_ []worker.Run, low bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.forgotten.Load():
		return to, false, errForgotten
	case r.w.Passed != nil && (s.absent(now) || !s.concerns(r.w.Passed)):
		return to, false, notOwner(s.name)
	case s.absent(now), s.known != nil && s.known.Kind() != record.Sequence:
		return to, false, noSequence(s.name)
	case s.known == nil:
		return s.wait(r, now, to)
	case r.whole && s.known.Keyed():
		return to, false, noRange(s.name)
	}
	return s.mode.serve(r, now, readAt, to)
}

// errForgotten: the Issuer removes the series or has removed it, so nobody would serve a request that waits there.
var errForgotten = errors.New("the series is forgotten")

// forget reports whether the Issuer must remove the series: it has no record, nobody waits, and the node need
// not read it. If so, it marks the series as forgotten, and requests must look for another one.
func (s *series) forget(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	absent := s.absentAt == 0 || now-s.absentAt >= int64(absentFor)
	gone := s.known == nil && absent && !s.stale && len(s.waiting) == 0
	s.forgotten.Store(gone)
	return gone
}

// absent reports whether the node has looked a short time ago, and found no sequence.
func (s *series) absent(now int64) bool {
	return s.known == nil && s.absentAt != 0 && now-s.absentAt < int64(absentFor)
}

// wait makes a request wait, or refuses it if it has waited for a try that failed.
func (s *base) wait(r request, now int64, to []worker.Run) ([]worker.Run, bool, error) {
	if s.mode != nil {
		if refusal := s.mode.tooMany(r.n); refusal != nil {
			return to, false, refusal
		}
	}
	since := r.w.Since
	if since == 0 && s.refuses(r, now) || since != 0 && s.refusal != nil && s.refusedAt >= since {
		return to, false, s.refusal
	}
	err := s.queue(r, now, textPatience)
	return to, err == sequence.ErrPending, err
}

// tooMany is that of all modes but strict: no block is larger than the burst.
func (s *base) tooMany(n int64) *record.Refusal {
	if most := s.known.CeilingInForce().Burst(); n > most {
		return tooMany(most, ", or raise its ceiling")
	}
	return nil
}

// queue makes a request wait, unless it has waited for too long. late says for what.
func (s *base) queue(r request, now int64, late string) error {
	switch since := r.w.Since; {
	case since == 0:
		r.w.Since = now
		s.waits++
	case now-since >= int64(patience):
		return noBlock(late)
	}
	s.waiting = append(s.waiting, r)
	return sequence.ErrPending
}

// refuses reports whether a new request is refused at once. One with a key may have its value already, although the
// sequence is exhausted.
func (s *base) refuses(r request, now int64) bool {
	return s.refusal != nil && now < s.retryAt && (r.w.Key == "" || s.refusal.Reason != record.Exhausted)
}

// refuse sets the refusal for requests that wait, and for new ones until the next try. nil: there is
// no reason to refuse.
func (s *base) refuse(r *record.Refusal, now int64) {
	if s.refusal, s.refusedAt = r, now; r != nil {
		s.retryAt = now + int64(min(cmp.Or(r.RetryAfter, time.Second), time.Second))
	}
}

// mode is how a node issues a sequence, and what the node keeps for that. A new life of a name has a new one. The mutex
// of its sequence is held when a method is called.
type mode interface {
	// serve issues the values of a request, refuses it, or makes it wait. low means that Round should be called soon.
	// readAt is when the node last knew that nothing had changed.
	serve(r request, now, readAt int64, to []worker.Run) (_ []worker.Run, low bool, _ error)
	// tooMany returns the refusal of a request for n values if no request ever gets so many, else nil.
	tooMany(n int64) *record.Refusal
	// lacks reports whether requests wait that the node cannot answer without a write.
	lacks() bool
	// used reports whether the node takes blocks of the sequence also when nobody waits.
	used() bool
	// urgency returns how soon a round must work on a sequence for which nobody waits.
	urgency(e situation) urgency
	// saw takes over what was read, after the series has taken over the record. before is what it knew until then.
	saw(v sight, before *record.Record, e situation)
	// nextWrite returns the write that is due, or nil. It takes the requests of the write out of those that wait.
	nextWrite(v sight, e situation) *blockWrite
	// wrote ends a write that was sent at this time with the error err: see notMade. It returns the requests that must
	// look again, and the longest time for which rounds must leave the sequence to other nodes.
	wrote(t blockWrite, v sight, sent, now int64, err error) (woken []request, pause time.Duration)
	// pause returns the longest pause after tries in which other nodes were faster.
	pause(now int64) time.Duration
	// drop drops what the node holds.
	drop()
	// report notes what the node holds in u, and returns it for the line of SEQ.
	report(u *Use) string
}

// wakeAt makes a round look at the series at this time: see Issuer.wakeAt.
func (s *series) wakeAt(at int64) { s.ring(s, at) }

// start returns the mode of a series whose record the node has met just now.
func (s *series) start(m record.Mode) mode {
	switch m {
	case record.Strict:
		return &strict{series: s}
	case record.Ordered:
		return newOrdered(&s.base, s.relay)
	}
	return newSegment(s)
}

// blockWrite is the write of a mode, with what the node knows of it.
type blockWrite struct {
	record.Write
	requests []request       // that it answers
	keys     *record.Keyring // as the write leaves them, nil if it does not write them
	// renews: the owner of an ordered sequence makes the write, in this session. It may before the node may take
	// positions.
	renews  bool
	session int64
}

// stocked returns the mode if it holds positions in memory, which the journal keeps. nil: it has another one.
func (s *series) stocked() *segment {
	m, _ := s.mode.(*segment)
	return m
}

// owned returns the mode if this node is the owner of the sequence, else nil.
func (s *series) owned() *ordered {
	if m, ok := s.mode.(*ordered); ok && m.leased() {
		return m
	}
	return nil
}

// window counts the positions that a node issues, to know their rate. It begins with the first block, and begins
// anew with a block that is taken more than windowTime later.
type window struct {
	// since is when the window began, in ns of AtMost, 0 for no window. issued is the number of
	// positions that were issued before.
	since, issued int64
	// before is the rate in the window before, negative if there was none.
	before float64
}

const windowTime = time.Minute

// rate returns the number of positions issued in a second, over the last windowTime or longer. issued is the number
// of all positions that were issued until now.
func (w window) rate(issued, now int64) float64 {
	if w.since == 0 {
		return 0
	}
	n, elapsed := float64(issued-w.issued), time.Duration(now-w.since)
	switch {
	case elapsed >= windowTime:
		return n / elapsed.Seconds()
	case w.before < 0:
		return n / windowTime.Seconds() // a burst of some seconds does not tell what comes
	}
	return (n + w.before*(windowTime-elapsed).Seconds()) / windowTime.Seconds()
}

// roll begins the next window if it is time.
func (w *window) roll(issued, now int64) {
	switch {
	case w.since == 0:
		*w = window{now, issued, -1}
	case time.Duration(now-w.since) >= windowTime:
		*w = window{now, issued, w.rate(issued, now)}
	}
}

// secret is the key of a sequence as a node knows it. checked is when the node last found the key in ZooKeeper, in ns
// of AtMost.
type secret struct {
	key     sequence.Key
	checked int64
}

// valuesOf returns a record's map with its key. A plain map needs none.
func (s *secret) valuesOf(r record.Record) sequence.Values {
	if s == nil {
		return sequence.NewValues(r.Map, sequence.Key{})
	}
	return sequence.NewValues(r.Map, s.key)
}

// appendRuns appends the values of a block to to.
func appendRuns(to []worker.Run, v *sequence.Values, b positions.Block) []worker.Run {
	if !v.Keyed() {
		first := worker.ID(v.Map.Value(b.First))
		return append(to, worker.Run{First: first, Step: worker.ID(v.Increment), Len: int(b.Len())})
	}
	for p := b.First; p < b.End; p++ {
		to = append(to, worker.Run{First: worker.ID(v.Value(p)), Len: 1})
	}
	return to
}

// secretDue reports whether the node must look for the key of a record in ZooKeeper. mu is held.
func (s *series) secretDue(r record.Record, now int64) bool {
	learned := s.known != nil && s.known.ID == r.ID && s.secret != nil
	return !learned || s.stale || now-s.secret.checked >= int64(renewAfter)
}

// putBackSecret returns the operation that puts back the key of a record, if ZooKeeper has lost it and the node
// knows it. mu is held.
func (s *series) putBackSecret(v view, r record.Record) []store.Op {
	if v.secret == nil || s.secret == nil || s.known.ID != r.ID {
		return nil
	}
	if _, ok := r.SecretIn(*v.secret); ok {
		return nil
	}
	write := record.WriteSecret(r.ID, s.secret.key)
	if v.secret.Found {
		return []store.Op{store.SetOp{Path: write.Path, Data: write.Data, Version: v.secret.Stat.Version}}
	}
	return []store.Op{write}
}

// learnSecret takes over the key of the record known, if it was read. sent is when the read was sent, ns of
// AtMost.
func (s *series) learnSecret(v view, sent int64) {
	if v.secret == nil {
		return
	}
	if k, ok := s.known.SecretIn(*v.secret); ok {
		s.secret = &secret{k, sent}
		s.values = s.secret.valuesOf(*s.known)
	}
}
