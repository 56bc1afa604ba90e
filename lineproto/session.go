package lineproto

import (
	"context"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// outBound is how many bytes of output are gathered before a flush. One step may exceed
// it by one reply or one stretch of bare GETs. A long GET n does not exceed it.
const outBound = 32 << 10

// idLine is the most bytes of an ID in a reply: $19 and 19 digits, each with a CRLF.
const idLine = 5 + 19 + 2

// status is what the engine must do after consume.
type status uint8

const (
	needInput status = iota // flush, then come back with more input
	finished                // flush, then close
	needFlush               // flush, then come back in turn
	needWake                // flush, then come back when the session is woken
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
	srv  *Server
	conn waiter // nil in tests without sequences
	in   plain
	arr  array
	who  identity
	fr   framing // of the request being answered
	out  []byte  // replies that the engine must send
	// task is the work that comes before the next request is taken off the input.
	task task
	args [][]byte
	// seq is the last request for a sequence. It is nil before the first one.
	seq *seqRequest

	authed bool             // has sent a valid token
	wrong  uint8            // wrong tokens that it has sent
	rights *sequence.Rights // of its last valid token, as they were when it was sent

	// order is the order under way. may is how many IDs it may take in this turn.
	order order
	may   int
	// multi is nil outside of MULTI and EXEC.
	multi *transaction
	// The outcome of the turn: how many IDs it took, whether the tick has run out,
	// and whether a reservation has waited for a tick.
	took           int
	ranOut, waited bool
	// halfClosed is set when the client has stopped sending. The client may be gone.
	halfClosed bool

	// runs were reserved for the order or for the reply under way. left are the IDs of
	// the reply that are not in out yet. They are kept as runs, because 10,000 IDs are
	// a few runs but 200 KB of text.
	runs []worker.Run
	left rest
	// before is the value that left had when out was empty. It is zero when out holds
	// anything but IDs of that left.
	before rest

	counts   tally
	gathered int64 // its share of Server.gathered
}

// consume executes the requests in in, in order. used is how many bytes of in are
// consumed: the next call must get in without them. eof means that nothing follows in.
// consume stops when out holds outBound bytes, so it never waits for the client. It
// takes up to may IDs, and stops at an order that needs more.
func (s *session) consume(ctx context.Context, in []byte, eof bool, may int) (used int, st status) {
	s.may, s.took, s.ranOut, s.waited = may, 0, false, false
	if s.before = (rest{}); len(s.out) == 0 && s.order.n == 0 {
		s.before = s.left
	}
	for {
		if s.order.n > 0 && !s.fill(ctx) {
			return used, needFlush
		}
		s.render()
		if len(s.out) >= outBound {
			return used, needFlush
		}
		s.before = rest{}
		if s.task != taskNone {
			if used, st = s.work(in, used); st != needInput {
				return used, st
			}
			continue
		}
		if s.executing() {
			s.runQueued(ctx)
			continue
		}
		input := in[used:]
		if s.arr.unfinished() || len(input) > 0 && input[0] == '*' && s.in.tel == telNone {
			n, more := s.array(ctx, input)
			if used += n; more {
				return used, needInput
			}
			continue
		}
		if count, n := s.in.bareGETs(input); count > 0 {
			used += n
			s.mirror()
			s.stretch(count)
			continue
		}
		line, n, v := s.in.line(input, eof)
		used += n
		s.out = s.in.answerTelnet(s.out)
		switch v {
		case lineMore:
			return used, needInput
		case lineOK:
			s.mirror()
			s.line(ctx, line)
		case lineArray:
			// The next round of the loop takes it.
		case lineNUL:
			s.mirror()
			s.refuse(ids.Reply(ids.ERR, "request contains a NUL byte"), nil)
		case lineTooLong:
			s.mirror()
			s.refuse(s.srv.errLong, line)
		}
	}
}

// work does the session's task. in[:used] is consumed. If st is needInput, the task is done
// and the session may take the next request. now is how many bytes are consumed then.
func (s *session) work(in []byte, used int) (now int, st status) {
	switch s.task {
	case taskSequence:
		if used = s.seq.repeats(in, used); !s.serve() {
			return used, needWake
		}
	case taskLines:
		if !s.list() {
			return used, needFlush
		}
	case taskEnd:
		return used, finished
	}
	s.task = taskNone
	return used, needInput
}

// mirror selects the line ending of the reply.
func (s *session) mirror() {
	if s.fr = linesLF; s.in.crlf {
		s.fr = linesCRLF
	}
}

// line answers a plain request.
func (s *session) line(ctx context.Context, line []byte) {
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
	e := s.exec(ctx, index, verb, s.args)
	s.trim()
	if e != nil && (e.Code == ids.ERR || e.Code == ids.NOAUTH) && (isHTTP(line) || isProxyHeader(line)) {
		s.refuse(e, line)
		return
	}
	size := len(line) + len("\n")
	if s.in.crlf {
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

// stretch begins an order for count bare GETs.
func (s *session) stretch(count int) {
	if s.begin(order{n: count, index: getIndex, each: true}); s.locked() {
		s.fail(errNoAuth)
	}
}

// array answers a RESP request, or a stretch of GETs, if in holds one. used is how many
// bytes of in are consumed. more means that the request needs more input.
func (s *session) array(ctx context.Context, in []byte) (used int, more bool) {
	s.fr = s.who.framing()
	if count, n := s.arr.gets(in); count > 0 && !s.queueing() {
		s.stretch(count)
		return n, false
	}
	s.arr.locked = s.locked()
	held := s.arr.unfinished()
	args, used, ok, e := s.arr.next(in, s.args[:0])
	s.args = args
	if !s.gather(s.keeps()) {
		e = s.srv.errGathered
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
	if !s.queueing() {
		s.executed(index, s.exec(ctx, index, verb, args), size)
		return
	}
	c, e := s.check(index, verb, args)
	switch {
	case e == nil && c.inMulti == multiNow:
		s.executed(index, c.run(s, ctx, args), size)
		return
	case e == nil:
		e = s.queue(c, verb, args)
	}
	if e != nil {
		s.multi.broken, s.multi.requests = true, nil
		s.executed(index, e, size)
	}
}

// keeps returns how many bytes the session keeps for its client: of requests until they are whole,
// or until EXEC, and of a reply that is longer than a flush of IDs.
func (s *session) keeps() int64 {
	n := cap(s.arr.held)
	if s.multi != nil {
		n += cap(s.multi.requests)
	}
	if len(s.out) > outBuf {
		n += len(s.out)
	}
	return int64(n)
}

// gather sets the memory that the session takes for its client to n bytes. If
// all sessions together then exceed maxGathered, it drops the request and returns
// false.
func (s *session) gather(n int64) bool {
	if n == s.gathered {
		return true
	}
	more := n - s.gathered
	s.gathered = n
	if s.srv.gathered.Add(more) <= maxGathered || more <= 0 {
		return true
	}
	s.arr, s.multi = array{}, nil
	s.gather(0)
	return false
}

// end gives back what the session holds of the server. The engine calls it when the
// connection has ended.
func (s *session) end() {
	s.drop()
	s.fold()
	s.gather(0)
}

// trim drops a long list of arguments, so that an idle connection does not keep that of
// a large MGET.
func (s *session) trim() {
	if cap(s.args) > 16 {
		s.args = nil
	}
}

// exec executes a request of either framing. index is the result of lookup. Unless exec
// returns an error, it has appended the reply or begun an order.
func (s *session) exec(ctx context.Context, index int, verb []byte, args [][]byte) *ids.ReplyError {
	c, e := s.check(index, verb, args)
	if e != nil {
		return e
	}
	return c.run(s, ctx, args)
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

// refuse answers malformed input, in HTTP if line looks like it, and ends the session:
// the input that follows may begin within a request.
func (s *session) refuse(e *ids.ReplyError, line []byte) {
	switch {
	case isHTTP(line):
		s.out = appendHTTP(s.out, s.srv.cfg.AdminHint)
	case isProxyHeader(line):
		e = errProxyHeader
		s.out = s.fr.fail(s.out, e)
	default:
		if s.locked() {
			e = errNoAuth
		}
		s.out = s.fr.fail(s.out, e)
	}
	s.counts.add(s, len(s.srv.table), resultOf(e), 1)
	s.task = taskEnd
}
