package lineproto

import (
	"context"
	"fmt"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// How a session answers one request that it has taken off the input.

// line answers a plain request, or refuses a line that is none.
func (s *session) line(ctx context.Context, line []byte, v verdict) {
	s.fr = s.in.framing()
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
	if !s.gather() {
		e = errGathered
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
