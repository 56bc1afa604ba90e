package seq

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

// keeper is what a mode asks of the sequence that it issues.
type keeper interface {
	// knowWritten takes over the record of a write that was acknowledged at this time, ns of AtMost. mu is held.
	knowWritten(t blockWrite, now int64)
	// wakeAt makes a round look at the sequence at this time, ns of AtMost: soon for at once.
	wakeAt(at int64)
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

// takeWaiting takes all requests that wait. mu is held.
func (s *base) takeWaiting() []request {
	all := s.waiting
	s.waiting = nil
	return all
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

func wakeAll(some []request) {
	for _, r := range some {
		r.wake()
	}
}

// totals counts what a series did, or several: the positions that were issued, the blocks that were taken, and the
// requests that waited.
type totals struct{ issued, blocks, waits int64 }

func (t *totals) add(o totals) {
	t.issued, t.blocks, t.waits = t.issued+o.issued, t.blocks+o.blocks, t.waits+o.waits
}

// What follows decides which step of a round is due for one series. It does no I/O. Methods of series are called with
// mu held, but for wants, urgency, isStale, change, wakeWaiting and decide.

// situation has the inputs of a decision that are not in the records.
type situation struct {
	sent  int64 // when the read of the records was sent, ns of AtMost
	least int64 // the same, ns of AtLeast
	now   int64 // the sequence time, ms
	// unconfirmed is the time left until this node may take positions: see Rounds.unconfirmed.
	unconfirmed time.Duration
	spread      time.Duration // see the function spread
	// volatile: what the node holds does not outlast the process, or not a stop that releases the worker.
	volatile  bool
	nonce, by string
	session   int64 // the present connection to ZooKeeper
}

// mostVolatile is the longest supply of a node whose blocks do not outlast it: what is left is lost with it.
const mostVolatile = time.Minute

// supply returns how long a block should last.
func (e situation) supply(r *record.Record) time.Duration {
	if e.volatile {
		return min(r.Supply(), mostVolatile)
	}
	return r.Supply()
}

// sight is what was read for a mode: /cluster, /seq and the record together, and then what else it wants.
type sight struct {
	record.Found
	read   int64            // when the read of the record was sent, ns of AtMost
	got    timeguard.Moment // when it was answered
	keys   *record.Keyring  // nil: they were not read
	secret *store.Record    // the key of the record, nil: it was not read
}

// after returns what a write of the record of v leaves in ZooKeeper.
func (v sight) after(t blockWrite) sight {
	version := v.Stat.Version + 1
	if version == store.AnyVersion { // two writes were needed: see setVersion
		version++
	}
	v.Record, v.Stat, v.secret = &t.Record, store.Stat{Version: version}, nil
	if t.keys != nil {
		v.keys = t.keys.Written()
	}
	return v
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

// urgency says how soon a round must work on a series.
type urgency int

const (
	idle    urgency = iota // there is nothing to do
	renew                  // the record must be written again
	needed                 // a block must be taken, or the record be read
	awaited                // requests wait
)

// errNotSent: a write was not sent, because the node may not take positions now.
var errNotSent = errors.New("the write was not sent")

// notMade reports whether it is certain that a write was not made, although ZooKeeper can be reached.
func notMade(err error) bool { return errors.Is(err, errNotSent) || store.Outpaced(err) }

// backoff returns the longest pause after so many conflicts. If a thousand nodes ask for one name at once, each success
// of one makes all others fail, so that they must not all try again at once.
func backoff(conflicts int) time.Duration { return 10 * time.Millisecond << min(conflicts, 7) }

// soon is a time that has passed.
const soon = 1

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

func confirming(left time.Duration) *record.Refusal {
	return record.Refuse(record.Confirming, left,
		"this node reached ZooKeeper a short time ago, and ZooKeeper may have lost data. Retry, or try another node")
}

func noKeys(name string) *record.Refusal {
	return record.Refuse(record.WrongMode, 0, "keys are for strict sequences, and %s is not one. Leave the key out", name)
}

func tooMany(most int64, advice string) *record.Refusal {
	return record.Refuse(record.TooMany, 0, "the sequence gives at most %d values at once. Ask for fewer%s", most, advice)
}

// textPatience is what a request is told that has waited for ZooKeeper for too long.
const textPatience = "ZooKeeper did not give this node any values in time. Retry, or try another node"

func noBlock(why string) *record.Refusal {
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
	// Refusal is why the node gets no block at present, "" if it does or has not asked.
	Refusal record.Reason
}
