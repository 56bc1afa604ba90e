package lineproto

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// maxRange is the most values of one RANGE or INCRBY. Such a reply has two values at most,
// so the limit protects the sequence from a typing error.
const maxRange = 1_000_000

// seqKind is a form of request for a sequence. The reply depends on it.
type seqKind uint8

const (
	seqNext   seqKind = iota // one value
	seqMany                  // n values
	seqRange                 // the first and the last of n values
	seqIncr                  // one value as an integer
	seqIncrBy                // the last of n values as an integer
	seqShow                  // a line of text
	seqKeyed                 // one value, the same for the same key
	seqPass                  // as seqRange, for another node, and the owner
)

// seqRequest is a session's request for a sequence. A session makes it at its first such
// request and uses it again for the later ones.
type seqRequest struct {
	kind  seqKind
	index int // the command's row
	name  []byte
	n     int // values of the request
	// times is how many requests like this one, that follow each other in the input, are
	// not answered yet. One call gets the values for all of them. alone is set when such a
	// call has failed: each request then gets a call and an error of its own.
	times int
	alone bool
	// size is the length of the request if its bytes are at the end of the consumed input, where repeats compares them
	// with the input behind. A request for one value always is: it is too short to be held elsewhere, see maxKept. size
	// is 0 after that comparison.
	size int

	wait    sequence.Wait
	pending bool        // the last call has returned ErrPending
	woken   atomic.Bool // since that call
	wake    func()      // sets woken and wakes the connection
	stopped bool        // it must no longer wait
	early   *early      // what the request got before its turn, nil for nothing

	lines []string // of the reply to a SEQS, which are not in out yet
}

// waker is a connection that waits, for a sequence or for its turn.
type waker interface {
	// wake makes the connection look whether it can go on. It is safe for concurrent use, also after the end of the
	// connection.
	wake()
}

var (
	errRange = replies.New(ids.ERR, fmt.Sprintf("a count must be 1 to %d, digits only", maxRange))
	errNext  = replies.New(ids.ERR, fmt.Sprintf("a count must be 1 to %d, digits only, "+
		"and a key a letter, then letters, digits and _ . : -, at most %d bytes", MaxBatch, maxTag))
	errStopping = replies.New(ids.NOTREADY, "stopping")
)

// asks returns the run of a command that asks for a sequence.
func asks(kind seqKind) func(*session, context.Context, [][]byte) *ids.ReplyError {
	return func(s *session, _ context.Context, args [][]byte) *ids.ReplyError { return s.ask(kind, args) }
}

// ask makes a request for the sequence args[0] the session's task. If the request was executed before its turn, the
// task is that one.
func (s *session) ask(kind seqKind, args [][]byte) (e *ids.ReplyError) {
	name, n, w := args[0], int64(1), sequence.Wait{}
	switch {
	case kind == seqPass:
		n, w.Passed, e = s.passed(args)
	case len(args) > 1:
		kind, n, w.Key, e = kind.with(args[1])
	}
	if e != nil || s.popAhead(kind, name, n) {
		return e
	}
	if s.srv.cfg.Sequences == nil {
		return replies.ErrNoSequences
	}
	if err := sequence.CheckName(name); err != nil {
		return replies.New(ids.ERR, err.Error())
	}
	if !s.rights.MayUse(name) {
		return replies.NoRight(string(name))
	}
	q := s.request()
	q.kind, q.n, q.times, q.alone, q.wait, q.early = kind, int(n), 1, false, w, nil
	q.name = append(q.name[:0], name...)
	s.task = taskSequence
	return nil
}

// with returns what a request becomes by the word behind the name: a count or, for NEXT, a key.
func (k seqKind) with(word []byte) (kind seqKind, n int64, key string, e *ids.ReplyError) {
	n, ok := number(word)
	if k != seqNext {
		if !ok || n > maxRange {
			return k, 0, "", errRange
		}
		return k, n, "", nil
	}
	switch {
	case isTag(word):
		return seqKeyed, 1, string(word), nil
	case ok && n <= int64(MaxBatch):
		return seqMany, n, "", nil
	case !ok && bytes.ContainsFunc(word, func(r rune) bool { return r < '0' || r > '9' }):
		return k, 0, "", errNext
	}
	return k, 0, "", errCount
}

// doSeqs begins the reply to SEQS.
func (s *session) doSeqs(_ context.Context, args [][]byte) *ids.ReplyError {
	var prefix []byte
	if s.srv.cfg.Sequences == nil {
		return replies.ErrNoSequences
	}
	if len(args) > 0 && len(args[0]) > 0 {
		prefix = args[0]
		if err := sequence.CheckPrefix(prefix); err != nil {
			return replies.New(ids.ERR, err.Error())
		}
	}
	q := s.request()
	q.lines = s.srv.cfg.Sequences.List(prefix, s.rights)
	s.out = s.fr.begin(s.out, len(q.lines))
	s.task = taskLines
	return nil
}

// appendLines appends lines to out, until all are in it or it holds outBound bytes. It reports
// whether the reply is complete.
func (s *session) appendLines() bool {
	q := s.seq
	for len(q.lines) > 0 && len(s.out) < outBound {
		s.out = s.fr.text(s.out, q.lines[0])
		q.lines = q.lines[1:]
	}
	if len(q.lines) > 0 {
		return false
	}
	s.out, q.lines = s.fr.end(s.out), nil
	return true
}

// request returns the session's seqRequest.
func (s *session) request() *seqRequest {
	if s.seq == nil {
		s.seq = newSeqRequest(s.waker)
	}
	return s.seq
}

// newSeqRequest returns a request of a connection, which it wakes when it is woken.
func newSeqRequest(of waker) *seqRequest {
	q := &seqRequest{}
	q.wake = func() {
		q.woken.Store(true)
		of.wake()
	}
	return q
}

// answerSequence answers the session's request for a sequence, and those like it that follow at in[used:]. consumed is
// how many bytes of in are consumed then. done is false if the request waits for ZooKeeper.
func (s *session) answerSequence(in []byte, used int) (consumed int, done bool) {
	q := s.seq
	if q.pending {
		if !s.awake() {
			return used, false // it has waited since before its turn
		}
		q.pending = false
		if woken := q.woken.Swap(false); q.stopped && !woken { // what it waits for has not come
			s.forsake()
			return used, true
		}
	} else {
		used = q.repeats(in, used)
	}
	q.size = 0
	for q.times > 0 {
		k := q.times
		if q.alone {
			k = 1
		}
		err := s.attempt(k)
		switch {
		case err == nil:
			s.counts.add(s, q.index, resultOK, int64(k))
			q.times -= k
		case !isPending(err):
			if q.alone = true; k == 1 {
				s.refuseSequence(replies.Of(err), 1)
			}
		case q.stopped:
			s.forsake()
			return used, true
		default:
			q.pending = true
			return used, false
		}
	}
	return used, true
}

// repeats adds the requests at in[used:] that are the same as this one. used is the number of bytes of in that are
// consumed before the call, and consumed the number after it. So a pipeline of NEXT costs one call, and one commit if
// the sequence is strict.
func (q *seqRequest) repeats(in []byte, used int) (consumed int) {
	if q.kind != seqNext && q.kind != seqIncr || q.early != nil {
		return used
	}
	for q.size > 0 && len(in)-used >= q.size && q.times < maxBare &&
		bytes.Equal(in[used:used+q.size], in[used-q.size:used]) {
		used += q.size
		q.times++
	}
	return used
}

func isPending(err error) bool { return errors.Is(err, sequence.ErrPending) }

// forsake refuses the request that waits. The sequence may still answer it, so later requests must not use its
// seqRequest.
func (s *session) forsake() {
	s.refuseSequence(errStopping, s.seq.times)
	s.seq = nil
}

// attempt gets what k requests ask for, and answers them. If it returns an error, it has
// answered none.
func (s *session) attempt(k int) error {
	q, b := s.seq, s.srv.cfg.Sequences
	if q.kind == seqShow {
		text, err := b.Show(&q.wait, q.name, q.wake)
		if err == nil {
			s.out = s.fr.text(s.out, text)
		}
		return err
	}
	n, whole := k*q.n, q.kind == seqRange || q.kind == seqIncrBy || q.kind == seqPass
	var runs []worker.Run
	var err error
	if q.early != nil {
		runs, err, q.early = q.early.runs, q.early.err, nil
	} else {
		runs, err = b.Take(&q.wait, q.name, n, whole, q.wake, s.runs[:0])
	}
	if err != nil {
		return err
	}
	if s.runs = runs; !holds(runs, n, whole) {
		return replies.New(ids.NOTREADY, fmt.Sprintf(
			"internal error: a sequence did not return %d values. Try another node", n))
	}
	switch q.kind {
	case seqNext, seqKeyed:
		for _, r := range runs {
			s.out = s.fr.ids(s.out, r)
		}
	case seqIncr:
		for _, r := range runs {
			s.out = s.fr.integers(s.out, r)
		}
	case seqMany:
		s.out = s.fr.begin(s.out, q.n)
		s.unsent = runsLeft{runs: runs}
	default:
		s.answerBounds(runs[0].First, runs[len(runs)-1])
	}
	return nil
}

// answerBounds answers a request for consecutive values with the first of them, which is first, and the last, which is
// that of final.
func (s *session) answerBounds(first worker.ID, final worker.Run) {
	last := final.At(final.Len - 1)
	switch s.seq.kind {
	case seqRange:
		s.out = s.fr.pair(s.out, int64(first), int64(last), "")
	case seqPass:
		s.out = s.fr.pair(s.out, int64(first), int64(last), s.seq.wait.Owner)
	case seqIncrBy:
		s.out = s.fr.integers(s.out, worker.Run{First: last, Len: 1})
	}
}

// holds reports whether runs are n values. If whole is set, the runs must also follow each
// other.
func holds(runs []worker.Run, n int, whole bool) bool {
	for i, r := range runs {
		if r.Len < 1 || whole && i > 0 && (r.Step != runs[0].Step || r.First != runs[i-1].At(runs[i-1].Len)) {
			return false
		}
		n -= r.Len
	}
	return n == 0 && len(runs) > 0
}

// refuseSequence answers k requests for a sequence with an error.
func (s *session) refuseSequence(e *ids.ReplyError, k int) {
	s.counts.add(s, s.seq.index, resultOf(e), int64(k))
	s.seq.times -= k
	for range k {
		s.out = s.fr.fail(s.out, e)
	}
}

// awake reports whether the request that waits for a sequence can go on.
func (s *session) awake() bool { return s.seq.stopped || s.seq.woken.Load() }

// stopWaiting ends the wait for a sequence, if there is one. After that, the engine calls it for each
// request that would wait.
func (s *session) stopWaiting() {
	if s.seq != nil {
		s.seq.stopped = true
	}
}
