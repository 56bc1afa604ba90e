package lineproto

import (
	"context"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// transaction has the requests between a MULTI and its EXEC. Client libraries send both around a
// pipeline by default. Requests take effect at EXEC, one after the other: the replies are one
// array, and each may be an error.
type transaction struct {
	// requests are the requests in RESP, and n is how many there are.
	requests []byte
	n        int
	// broken: a request was refused, so EXEC executes none.
	broken bool
	// running: EXEC has begun. requests are those that are not answered yet.
	running bool
}

var (
	errNested  = replies.New(ids.ERR, "MULTI calls can not be nested")
	errNoMulti = replies.New(ids.ERR, "EXEC and DISCARD need a MULTI before them")
	errAborted = replies.New(ids.EXECABORT, "Transaction discarded because of previous errors.")
	errInMulti = replies.New(ids.ERR, "this command is not allowed between MULTI and EXEC")
)

// queueing reports whether requests in RESP wait for EXEC.
func (s *session) queueing() bool { return s.multi != nil && !s.multi.running }

// executing reports whether the requests of an EXEC are being answered.
func (s *session) executing() bool { return s.multi != nil && s.multi.running }

// queue keeps a request for EXEC. c is its row.
func (s *session) queue(c *command, verb []byte, args [][]byte) *ids.ReplyError {
	m := s.multi
	switch {
	case c.inMulti == multiRefused:
		return errInMulti
	case m.n == maxArgs:
		return errManyArgs
	}
	m.requests = appendBulk(appendHeader(m.requests, '*', 1+len(args)), string(verb))
	for _, a := range args {
		m.requests = appendBulk(m.requests, string(a))
	}
	m.n++
	if len(m.requests) > maxArray {
		return errLongArray
	}
	s.out = s.fr.status(s.out, "QUEUED")
	return nil
}

func (s *session) doMulti(context.Context, [][]byte) *ids.ReplyError {
	if s.multi != nil {
		return errNested
	}
	s.multi = &transaction{}
	s.out = s.fr.status(s.out, "OK")
	return nil
}

func (s *session) doExec(context.Context, [][]byte) *ids.ReplyError {
	m := s.multi
	switch {
	case m == nil:
		return errNoMulti
	case m.broken:
		s.multi = nil
		return errAborted
	case m.n == 0:
		s.multi = nil
	default:
		m.running = true
	}
	s.out = s.fr.begin(s.out, m.n)
	return nil
}

func (s *session) doDiscard(context.Context, [][]byte) *ids.ReplyError {
	if s.multi == nil {
		return errNoMulti
	}
	s.multi = nil
	s.out = s.fr.status(s.out, "OK")
	return nil
}

// runQueued answers the next requests of an EXEC.
func (s *session) runQueued(ctx context.Context) {
	used, _ := s.takeArray(ctx, s.multi.requests)
	if s.multi.requests = s.multi.requests[used:]; len(s.multi.requests) == 0 {
		s.multi = nil
	}
	s.countMemory()
}
