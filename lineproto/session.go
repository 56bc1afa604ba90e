package lineproto

import (
	"context"
	"fmt"

	"github.com/flaked/flaked/worker"
)

// outBound is how much output is gathered before it is flushed. One step may
// go beyond it by one reply or one stretch of bare GETs; a long GET n does not.
const outBound = 16 << 10

// idLine is the most bytes of an ID as a reply: $19, 19 digits, two line endings.
const idLine = 5 + 19 + 2

// status is what a session wants of its engine.
type status uint8

const (
	needInput status = iota // flush, then come back with more input
	needFlush               // flush, then come back
	finished                // flush, then close
)

// session is one connection's conversation without its socket: bytes in, bytes
// out. An engine calls consume with what it has read and sends out.
type session struct {
	srv     *Server
	in      plain
	arr     array
	who     identity
	fr      framing // of the request being answered
	out     []byte  // replies to be sent; the engine empties it
	closing bool
	args    [][]byte

	authed bool  // has brought a good token
	wrong  uint8 // tokens that it has brought before

	// A reply of many IDs under way: runs reserved, from which runs[0] and so
	// on are taken as there is room in out. Runs rather than text, as 10,000
	// IDs are a few runs but 200 KB of text.
	runs, left []worker.Run

	counts   tally
	gathered int64 // what the server's gathered has of this session
}

// consume executes the requests that in holds, in order. It returns how many
// bytes of in it is done with, which next time are not to be there. eof says
// that nothing follows in. It stops at outBound: it never waits for the client.
func (s *session) consume(ctx context.Context, in []byte, eof bool) (used int, st status) {
	for {
		s.render()
		if len(s.out) >= outBound {
			return used, needFlush
		}
		if s.closing {
			return used, finished
		}
		rest := in[used:]
		if s.arr.unfinished() || len(rest) > 0 && rest[0] == '*' && s.in.tel == telNone {
			n, more := s.array(ctx, rest)
			if used += n; more {
				return used, needInput
			}
			continue
		}
		if count, n := s.in.bareGETs(rest); count > 0 {
			used += n
			s.mirror()
			s.bare(ctx, count)
			continue
		}
		line, n, v := s.in.line(rest, eof)
		used += n
		switch v {
		case lineMore:
			return used, needInput
		case lineOK:
			s.mirror()
			s.line(ctx, line)
		case lineArray:
			// It is next.
		case lineNUL:
			s.mirror()
			s.refuse(&Error{ERR, "NUL byte in a request"}, nil)
		case lineTooLong:
			s.mirror()
			s.refuse(s.srv.errLong, line)
		}
	}
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
	index := s.srv.lookup(verb, false)
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
	switch {
	case e == nil:
		s.counts.add(s, index, resultOK, 1)
	case e.Code == ERR && isHTTP(line):
		s.refuse(e, line)
	default:
		s.out = s.fr.fail(s.out, e)
		s.counts.add(s, index, resultOf(e), 1)
	}
}

// array answers a RESP request, or a stretch of GETs, if in holds one. It
// returns how many bytes of in are done with, and whether it takes more.
func (s *session) array(ctx context.Context, in []byte) (used int, more bool) {
	s.fr = s.who.framing()
	if count, n := s.arr.gets(in); count > 0 {
		s.bare(ctx, count)
		return n, false
	}
	s.arr.locked = s.locked()
	held := s.arr.unfinished()
	args, used, ok, e := s.arr.next(in, s.args[:0])
	s.args = args
	if !s.gather(int64(cap(s.arr.held))) {
		e = s.srv.errGathered
	}
	switch {
	case e != nil:
		s.refuse(e, nil)
	case ok && len(args) > 0: // an empty array is ignored, as an empty line is
		verb := args[0]
		index := s.srv.lookup(verb, true)
		if e := s.exec(ctx, index, verb, args[1:]); e != nil {
			s.out = s.fr.fail(s.out, e)
			s.counts.add(s, index, resultOf(e), 1)
		} else {
			s.counts.add(s, index, resultOK, 1)
		}
	}
	if held {
		s.args = nil // it refers to what was held
	}
	s.trim()
	return used, !ok && e == nil
}

// gather accounts for the memory of an unfinished request, and reports whether
// all sessions' together is within bounds.
func (s *session) gather(n int64) bool {
	if n == s.gathered {
		return true
	}
	more := n - s.gathered
	s.gathered = n
	if s.srv.gathered.Add(more) <= maxGathered || more <= 0 {
		return true
	}
	s.arr = array{}
	s.gather(0)
	return false
}

// end is for when the connection has ended.
func (s *session) end() {
	s.fold()
	s.gather(0)
}

// trim lets go of the arguments: those of a large MGET are not kept by an idle
// connection.
func (s *session) trim() {
	if cap(s.args) > 16 {
		s.args = nil
	}
}

// exec runs a request of any framing. index is lookup's; the reply is appended
// unless there is an error.
func (s *session) exec(ctx context.Context, index int, verb []byte, args [][]byte) *Error {
	if index == len(s.srv.table) {
		return errUnknown(verb)
	}
	c := s.srv.table[index].in(s.inRESP())
	if len(args) < c.min || len(args) > c.max {
		return errUsage(c)
	}
	if s.locked() && !c.open {
		return errNoAuth
	}
	return c.run(s, ctx, args)
}

// inRESP reports whether the request being answered came in RESP.
func (s *session) inRESP() bool {
	_, ok := s.fr.(resp)
	return ok
}

// refuse answers what is no request at all, in HTTP if that is what it was,
// and ends the session: what follows cannot be trusted to begin a request.
func (s *session) refuse(e *Error, line []byte) {
	if isHTTP(line) {
		s.out = appendHTTP(s.out, s.srv.cfg.AdminHint)
	} else {
		s.out = s.fr.fail(s.out, e)
	}
	s.counts.add(s, len(s.srv.table), resultOf(e), 1)
	s.closing = true
}

// bare answers a stretch of bare GETs from as few reservations as it takes. An
// error answers all that are left of it: they had all been received before,
// and asking once for each might wait for each.
func (s *session) bare(ctx context.Context, count int) {
	locked := s.locked()
	for count > 0 {
		var r worker.Run
		e := errNoAuth
		if !locked {
			r, e = s.reserve(ctx, count)
		}
		if e != nil {
			s.counts.add(s, getIndex, resultOf(e), int64(count))
			for ; count > 0; count-- {
				s.out = s.fr.fail(s.out, e)
			}
			return
		}
		s.out = s.fr.ids(s.out, r)
		s.counts.add(s, getIndex, resultOK, int64(r.Len))
		s.counts.issued(s, 1, int64(r.Len))
		count -= r.Len
	}
}

// issue answers with n IDs, or with none: what was reserved before an error is
// burnt, which costs nothing but numbers.
func (s *session) issue(ctx context.Context, n int, many bool) *Error {
	s.runs = s.runs[:0]
	for got := 0; got < n; {
		r, e := s.reserve(ctx, n-got)
		if e != nil {
			s.runs = s.runs[:0]
			return e
		}
		got += r.Len
		// Joining neighbours keeps the runs few when a Backend's are short.
		if k := len(s.runs) - 1; k >= 0 && s.runs[k].Step == r.Step && s.runs[k].At(s.runs[k].Len) == r.First {
			s.runs[k].Len += r.Len
		} else {
			s.runs = append(s.runs, r)
		}
	}
	s.counts.issued(s, n, 1)
	if many {
		s.out = s.fr.beginIDs(s.out, n)
	}
	s.left = s.runs
	return nil
}

// reserve is the Backend's Reserve, not trusted with the length.
func (s *session) reserve(ctx context.Context, n int) (worker.Run, *Error) {
	r, err := s.srv.cfg.Backend.Reserve(ctx, n)
	if err != nil {
		return r, asError(err)
	}
	if r.Len < 1 || r.Len > n {
		return r, &Error{NOTREADY, fmt.Sprintf("reserved %d of %d IDs", r.Len, n)}
	}
	return r, nil
}

// render moves IDs that are left of a reply to out until that is full.
func (s *session) render() {
	for len(s.left) > 0 && len(s.out) < outBound {
		r := &s.left[0]
		part := *r
		part.Len = min(part.Len, max(1, (outBound-len(s.out))/idLine))
		s.out = s.fr.ids(s.out, part)
		if r.First, r.Len = r.At(part.Len), r.Len-part.Len; r.Len == 0 {
			s.left = s.left[1:]
		}
	}
	if len(s.left) == 0 && cap(s.runs) > 64 {
		s.runs, s.left = nil, nil
	}
}
