package lineproto

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// outBound is how many bytes of output are gathered before a flush. One step may exceed
// it by one reply or one stretch of bare GETs. A long GET n does not exceed it.
const outBound = 32 << 10

// idLine is the most bytes of an ID in a reply: $19 and 19 digits, each with a CRLF.
const idLine = 5 + 19 + 2

// after is the action of the engine after consume. The order counts: from needFlush on, the session has more to do
// without more input. failed is the last one, and an engine handles it first.
type after uint8

const (
	needInput after = iota // flush, then come back with more input
	finished               // flush, then close
	needFlush              // flush, then come back in turn
	needWake               // flush, then come back when the session is woken
	failed                 // close, and send nothing
)

// task is work that a session does before it takes the next request.
type task uint8

const (
	taskNone     task = iota
	taskSequence      // the request for a sequence in session.seq
	taskLines         // the lines of a list in session.seq
	// With taskEnd the session has answered its last request.
	taskEnd
)

// session is one connection's conversation without its socket. An engine calls consume
// with the input that it has read, and sends out.
type session struct {
	srv    *Server
	waker  waker // nil in tests without sequences
	lines  lineParser
	arrays arrayParser
	who    identity
	fr     framing // of the request being answered
	out    []byte  // replies that the engine must send
	buf    *[]byte // the array of out, from Server.outBufs. nil while the connection is not being answered
	// task is the work that comes before the next request is taken off the input.
	task task
	args [][]byte
	// seq is the last request for a sequence. It is nil before the first one.
	seq *seqRequest
	// ahead are requests that were executed before their turn: see ahead.go. They have aheadBytes in all, at the
	// beginning of the input that is not consumed.
	ahead      []*seqRequest
	aheadBytes int

	authed bool             // has sent a valid token
	wrong  uint8            // wrong tokens that it has sent
	rights *sequence.Rights // of its last valid token, as they were when it was sent
	// wrongDB is set while the client believes that it uses a database that does not exist: see doSelect.
	wrongDB bool

	// uuid is that of the node's cluster, "" before the client has named one. owner is the ownership that the last PASS
	// named.
	uuid  string
	owner *sequence.Ownership

	order order // under way
	// multi is nil outside of MULTI and EXEC.
	multi *transaction

	// The engine sets these. mustNotBlock: the engine is an event loop. waited is the time for which its
	// requests have waited for a clock that went back. halfClosed: the client has stopped sending, and may be gone.
	mustNotBlock, halfClosed bool
	waited                   time.Duration
	// The engine reads these after a turn: the number of IDs that it took, and for how long there are none, if it has
	// ended for that reason.
	took  int
	pause worker.Pause
	// allowed is the number of IDs that the session may still take in the turn.
	allowed int

	// runs were reserved for the order or for the reply under way. unsent are the IDs of
	// the reply that are not in out yet. They are kept as runs, because 10,000 IDs are
	// a few runs but 200 KB of text.
	runs   []worker.Run
	unsent runsLeft

	counts  tally
	counted int64 // its share of Server.memory
}

// consume executes the requests in in, in order. used is the number of bytes of in that are
// consumed: the next call must get in without them. eof means that nothing follows in.
// consume stops when out holds outBound bytes, so it never waits for the client. It
// takes up to allowed IDs, and stops at an order that needs more. A panic ends the connection and nothing else.
func (s *session) consume(ctx context.Context, in []byte, eof bool, allowed int) (used int, then after) {
	defer s.closeOnPanic(in, &used, &then)
	s.allowed, s.took, s.pause = allowed, 0, worker.Pause{}
	for {
		if s.order.n > 0 && !s.issue(ctx) {
			return used, needFlush
		}
		s.render()
		if len(s.out) >= outBound {
			return used, needFlush
		}
		switch s.task {
		case taskSequence:
			var done bool
			if used, done = s.answerSequence(in, used); !done {
				s.lookAhead(in[used:])
				return used, needWake
			}
			s.task = taskNone
			continue
		case taskLines:
			if !s.appendLines() {
				return used, needFlush
			}
			s.task = taskNone
			continue
		case taskEnd:
			return used, finished
		}
		if s.executing() {
			s.runQueued(ctx)
			continue
		}
		input := in[used:]
		if s.arrays.unfinished() || len(input) > 0 && input[0] == '*' && s.lines.tel == telNone {
			n, more := s.takeArray(ctx, input)
			if used += n; more {
				return used, needInput
			}
			continue
		}
		if count, n := s.lines.bareGETs(input); count > 0 {
			used += n
			s.fr = s.lines.framing()
			s.stretch(count)
			continue
		}
		line, n, v := s.lines.next(input, eof)
		used += n
		s.out = s.lines.answerTelnet(s.out)
		switch v {
		case lineMore:
			return used, needInput
		case lineArray: // the next round takes it
		default:
			s.answerLine(ctx, line, v)
		}
	}
}

// closeOnPanic makes a panic of consume end the connection.
func (s *session) closeOnPanic(in []byte, used *int, then *after) {
	if p := recover(); p != nil {
		s.srv.cfg.Logger.Error("request panicked, closing its connection", "panic", p, "stack",
			string(debug.Stack()))
		*used, *then = len(in), failed
	}
}

// answerLine answers a plain request, or refuses a line that is none.
func (s *session) answerLine(ctx context.Context, line []byte, v verdict) {
	s.fr = s.lines.framing()
	switch v {
	case lineNUL:
		s.refuse(replies.New(ids.ERR, "request contains a NUL byte"), line)
		return
	case lineTooLong:
		s.refuse(replies.New(ids.ERR, fmt.Sprintf("line longer than %d bytes", maxLine)), line)
		return
	}
	verb, rest := cutWord(line)
	if len(verb) == 0 {
		return
	}
	inline := redisInline(verb, rest)
	if inline {
		s.fr = s.who.framing()
	}
	index := s.srv.lookup(verb, inline)
	s.args = s.args[:0]
	if index < len(s.srv.table) && s.srv.table[index].text {
		if len(rest) > 0 {
			s.args = append(s.args, rest)
		}
	} else {
		for len(rest) > 0 {
			var arg []byte
			arg, rest = cutWord(rest)
			s.args = append(s.args, arg)
		}
	}
	c, e := s.check(index, verb, s.args)
	if e == nil {
		e = c.run(s, ctx, s.args)
	}
	s.trim()
	if e != nil && (e.Code == ids.ERR || e.Code == ids.NOAUTH) && (isHTTP(line) || otherProtocol(line) != nil) {
		s.refuse(e, line)
		return
	}
	size := len(line) + len("\n")
	if s.lines.crlf {
		size++
	}
	s.executed(index, e, size)
}

// executed answers a request with its error, if it has one, and counts the request
// unless it has begun an order or asks for a sequence. size is how many bytes of the request
// are at the end of the consumed input.
func (s *session) executed(index int, e *ids.ReplyError, size int) {
	switch {
	case e != nil:
		s.out = s.fr.fail(s.out, e)
		s.counts.add(s, index, resultOf(e), 1)
	case s.order.n > 0:
		s.order.index = index
	case s.task == taskSequence:
		s.seq.index, s.seq.size = index, size
	default:
		s.counts.add(s, index, resultOK, 1)
	}
}

// takeArray answers a RESP request, or a stretch of GETs, if in holds one. used is the number of
// bytes of in that are consumed. more means that the request needs more input.
func (s *session) takeArray(ctx context.Context, in []byte) (used int, more bool) {
	s.fr = s.who.framing()
	if count, n := s.arrays.gets(in); count > 0 && !s.queueing() {
		s.stretch(count)
		return n, false
	}
	s.arrays.locked = s.locked()
	held := s.arrays.unfinished()
	args, used, ok, e := s.arrays.next(in, s.args[:0])
	s.args = args
	if !s.countMemory() {
		e = errMemory
	}
	switch {
	case e != nil:
		s.refuse(e, nil)
	case ok && len(args) > 0: // an empty array is ignored, as an empty line is
		s.answerArray(ctx, args[0], args[1:], used)
	}
	if held {
		s.args = nil // do not keep held alive
	}
	s.trim()
	return used, !ok && e == nil
}

// answerArray answers a request in RESP, or queues it. size is how many bytes it has.
func (s *session) answerArray(ctx context.Context, verb []byte, args [][]byte, size int) {
	index := s.srv.lookup(verb, true)
	if s.executing() {
		size = 0 // the request is not in the input
	}
	c, e := s.check(index, verb, args)
	if s.queueing() && (e != nil || c.inMulti != multiNow) {
		if e == nil {
			e = s.queue(c, verb, args)
		}
		if e != nil {
			s.multi.broken, s.multi.requests = true, nil
			s.executed(index, e, size)
		}
		return
	}
	if e == nil {
		e = c.run(s, ctx, args)
	}
	s.executed(index, e, size)
}

// check returns the row of a request, or the error with which the request is refused unread.
func (s *session) check(index int, verb []byte, args [][]byte) (*command, *ids.ReplyError) {
	known := index < len(s.srv.table)
	if s.locked() && !(known && s.srv.table[index].open) {
		return nil, errNoAuth
	}
	if !known {
		return nil, errUnknown(verb)
	}
	if row := &s.srv.table[index]; s.wrongDB && !row.open && !row.anyDB {
		return nil, errDB
	}
	c := s.srv.table[index].in(s.inRESP())
	if len(args) < c.min || len(args) > c.max {
		return nil, errUsage(c)
	}
	return c, nil
}

// inRESP reports whether the request being answered came in RESP.
func (s *session) inRESP() bool {
	_, ok := s.fr.(resp)
	return ok
}

// refuse answers malformed input, as its protocol demands if line looks like another one, and ends
// the session: the input that follows may begin within a request.
func (s *session) refuse(e *ids.ReplyError, line []byte) {
	other := otherProtocol(line)
	switch {
	case other != nil:
		e = other
	case s.locked():
		e = errNoAuth
	}
	if e == errTLS {
		s.srv.counters.badTLS.Add(1)
	}
	if other == nil && isHTTP(line) {
		s.out = appendHTTP(s.out, s.srv.cfg.AdminHint)
	} else {
		s.out = s.fr.fail(s.out, e)
	}
	s.counts.add(s, len(s.srv.table), resultOf(e), 1)
	s.task = taskEnd
}

// memory returns how many bytes the session keeps for its client: of requests until they are whole, until EXEC
// or until their turn, and of a reply that is longer than a flush of IDs.
func (s *session) memory() int64 {
	n := cap(s.arrays.held) + len(s.ahead)*aheadSize
	if s.multi != nil {
		n += cap(s.multi.requests)
	}
	if len(s.out) > outBuf {
		n += len(s.out)
	}
	return int64(n)
}

// countMemory counts the bytes that the session keeps. If all sessions together then keep more than
// maxMemory, it drops the request and returns false.
func (s *session) countMemory() bool {
	more := s.memory() - s.counted
	s.counted += more
	if more == 0 || s.srv.memory.Add(more) <= maxMemory || more < 0 {
		return true
	}
	s.arrays, s.multi = arrayParser{}, nil
	s.uncountMemory()
	return false
}

// uncountMemory counts nothing as kept.
func (s *session) uncountMemory() {
	s.srv.memory.Add(-s.counted)
	s.counted = 0
}

// end gives back what the session holds of the server. The engine calls it when the
// connection has ended.
func (s *session) end() {
	s.dropOrder()
	s.fold()
	s.uncountMemory()
}

// takeBuffer gives the session a buffer for its output.
func (s *session) takeBuffer() {
	s.buf = s.srv.outBufs.Get().(*[]byte)
	s.out = (*s.buf)[:0]
}

// returnBuffer gives the buffer back. One that a long STATS has grown is dropped.
func (s *session) returnBuffer() {
	if cap(s.out) <= 4*outBuf {
		*s.buf = s.out
		s.srv.outBufs.Put(s.buf)
	}
	s.buf, s.out = nil, nil
}

// trim drops a long list of arguments, so that an idle connection does not keep that of
// a large MGET.
func (s *session) trim() {
	if cap(s.args) > 16 {
		s.args = nil
	}
}
