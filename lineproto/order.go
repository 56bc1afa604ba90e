package lineproto

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// order is a request for IDs that has not been answered yet: a GET n or MGET, or
// a stretch of GETs.
type order struct {
	n, got int // IDs asked for, and reserved so far. n is 0 without an order
	index  int // the command's row
	// many is set when the reply is a list of IDs, even of one.
	many bool
	// each marks n requests for one ID, which are answered as IDs come. Any other
	// order is answered when all of its IDs are reserved.
	each bool
	// waits is set when the order did not get all of its IDs in its first turn.
	waits bool
	// accepted is set while the server's backlog counts the IDs that the order lacks.
	accepted bool
}

// runsLeft holds the IDs of a reply that are not in out yet: those of runs, without the
// first done IDs of runs[0].
type runsLeft struct {
	runs []worker.Run
	done int
}

func (o *order) lacks() int { return o.n - o.got }

// maxBare bounds a stretch of bare GETs, and so the output of one step. With 256 IDs
// the cost of a reservation is negligible.
const maxBare = 256

// bareGETs counts the lines at the beginning of in that are "GET" and nothing else, all
// with the same ending, at most maxBare. It returns their number and their bytes. It
// exists for speed alone: next and the command table answer the same lines one by one.
func (p *lineParser) bareGETs(in []byte) (count, used int) {
	const letters = 0x202020 // lower case
	const get = 'g' | 'e'<<8 | 't'<<16
	if p.scanned != 0 || p.tel != telNone || len(in) < 4 {
		return 0, 0
	}
	if in[3] == '\r' {
		for len(in) >= 5 && count < maxBare &&
			binary.LittleEndian.Uint32(in)|letters == get|'\r'<<24 && in[4] == '\n' {
			in, count = in[5:], count+1
		}
		if count > 0 {
			p.crlf = true
		}
		return count, 5 * count
	}
	for len(in) >= 4 && count < maxBare &&
		binary.LittleEndian.Uint32(in)|letters == get|'\n'<<24 {
		in, count = in[4:], count+1
	}
	if count > 0 {
		p.crlf = false
	}
	return count, 4 * count
}

// gets counts the requests at the beginning of in that are GET, alone or with a key of
// at most 99 bytes. It returns their number, at most maxBare, and their bytes. It
// exists for speed alone, as bareGETs does.
func (a *arrayParser) gets(in []byte) (count, used int) {
	const (
		one  = '*' | '1'<<8 | '\r'<<16 | '\n'<<24 | '$'<<32 | '3'<<40 | '\r'<<48 | '\n'<<56
		two  = one + 1<<8
		caps = 0x202020
		get  = 'g' | 'e'<<8 | 't'<<16 | '\r'<<24
	)
	if a.at > 0 || a.held != nil {
		return 0, 0
	}
	for count < maxBare && len(in)-used >= 13 {
		r := in[used:]
		head := binary.LittleEndian.Uint64(r)
		if binary.LittleEndian.Uint32(r[8:])|caps != get || r[12] != '\n' {
			break
		}
		if head == two {
			n := keyLen(r[13:])
			if n == 0 {
				break
			}
			used += n
		} else if head != one {
			break
		}
		used, count = used+13, count+1
	}
	return count, used
}

// keyLen returns how many bytes the argument at the beginning of in has, with its
// header and ending. It returns 0 if the argument is not whole or has more than 99
// bytes.
func keyLen(in []byte) int {
	if len(in) < 6 || in[0] != '$' { // $0\r\n\r\n
		return 0
	}
	n, at := int(in[1]-'0'), 4
	if in[2] != '\r' {
		n, at = n*10+int(in[2]-'0'), 5
		if !isDigit(in[2]) || in[1] == '0' {
			return 0
		}
	}
	end := at + n
	if !isDigit(in[1]) || in[at-2] != '\r' || in[at-1] != '\n' || end+2 > len(in) ||
		in[end] != '\r' || in[end+1] != '\n' {
		return 0
	}
	return end + 2
}

// stretch begins an order for count bare GETs.
func (s *session) stretch(count int) {
	s.order = order{n: count, index: getIndex, each: true}
	switch {
	case s.locked():
		s.failOrder(errNoAuth)
	case s.wrongDB:
		s.failOrder(errDB)
	}
}

// issue reserves IDs for the order under way, and answers the order when it has all of them. It reports whether the
// order is done. Otherwise the tick has run out or the IDs of the turn are used up, and the rest of the order waits for
// the next turn. So no turn waits for more than one tick, and in a loop issue never waits.
func (s *session) issue(ctx context.Context) (done bool) {
	o := &s.order
	switch {
	case !o.waits && o.n > s.allowed:
		s.allowed = 0 // not at once: all of it waits for a turn
	case o.waits && !o.accepted && s.allowed > 0:
		if e := s.acceptOrder(); e != nil {
			s.failOrder(e)
			return true
		}
	}
	for s.allowed > 0 {
		var r worker.Run
		var err error
		n := min(o.lacks(), s.allowed)
		if s.mustNotBlock {
			r, s.pause, err = s.srv.cfg.Backend.Try(n, s.waited)
		} else {
			r, err = s.srv.cfg.Backend.Reserve(ctx, n)
		}
		switch {
		case err != nil:
			s.failOrder(replies.Of(err))
			return true
		case r.Len == 0 && s.pause.For > 0:
			s.allowed = 0
			continue
		case r.Len < 1 || r.Len > n:
			s.failOrder(errReserved(r.Len, n))
			return true
		}
		o.got += r.Len
		s.took += r.Len
		if s.allowed -= r.Len; r.Len < n && !s.mustNotBlock {
			s.allowed = 0 // the next reservation would wait
		}
		if o.accepted {
			s.srv.backlog.Add(-int64(r.Len))
		}
		if o.each {
			s.out = s.fr.ids(s.out, r)
			s.counts.add(s, o.index, resultOK, int64(r.Len))
			s.counts.issued(s, 1, int64(r.Len))
		} else {
			s.runs = joined(s.runs, r)
		}
		if o.lacks() == 0 {
			s.answerOrder()
			return true
		}
	}
	o.waits = true
	return false
}

func errReserved(got, n int) *ids.ReplyError {
	return replies.New(ids.NOTREADY, fmt.Sprintf(
		"internal error: the node reserved %d of %d IDs. Try another node", got, n))
}

// joined appends r to runs. Joining neighbours keeps the runs few when a Backend's are short.
func joined(runs []worker.Run, r worker.Run) []worker.Run {
	if k := len(runs) - 1; k >= 0 && runs[k].Step == r.Step && runs[k].At(runs[k].Len) == r.First {
		runs[k].Len += r.Len
		return runs
	}
	return append(runs, r)
}

// acceptOrder adds the order to the backlog, or returns the reason for refusing it.
func (s *session) acceptOrder() *ids.ReplyError {
	o := &s.order
	lacks, ceiling := int64(o.lacks()), s.srv.cfg.Backend.Ceiling()
	if backlog := s.srv.backlog.Add(lacks) - lacks; !admits(backlog, lacks, ceiling, s.halfClosed) {
		s.srv.backlog.Add(-lacks)
		return replies.New(ids.BUSY, fmt.Sprintf("clients are waiting for too many IDs. Retry later. limit_ids=%d",
			ceiling))
	}
	o.accepted = true
	return nil
}

// answerOrder begins the reply to an order that has all of its IDs.
func (s *session) answerOrder() {
	o := s.order
	s.order = order{}
	if o.each {
		return // answered already
	}
	s.counts.issued(s, o.n, 1)
	s.counts.add(s, o.index, resultOK, 1)
	if o.many {
		s.out = s.fr.begin(s.out, o.n)
	}
	s.unsent = runsLeft{runs: s.runs}
}

// failOrder answers an order with an error. IDs that were reserved for the order are lost,
// which does no harm. The error answers all remaining requests of a stretch, because
// each new try might wait.
func (s *session) failOrder(e *ids.ReplyError) {
	o := s.order
	s.dropOrder()
	n := 1
	if o.each {
		n = o.lacks()
	}
	s.counts.add(s, o.index, resultOf(e), int64(n))
	for range n {
		s.out = s.fr.fail(s.out, e)
	}
}

// dropOrder ends an order that is not answered.
func (s *session) dropOrder() {
	if s.order.accepted {
		s.srv.backlog.Add(-int64(s.order.lacks()))
	}
	s.order = order{}
	s.runs = s.runs[:0]
}

// render appends remaining IDs of a reply to out, until all are in it or it holds
// outBound bytes.
func (s *session) render() {
	for len(s.unsent.runs) > 0 && len(s.out) < outBound {
		r := s.unsent.runs[0]
		r.First, r.Len = r.At(s.unsent.done), min(r.Len-s.unsent.done, max(1, (outBound-len(s.out))/idLine))
		s.out = s.fr.ids(s.out, r)
		if s.unsent.done += r.Len; s.unsent.done == s.unsent.runs[0].Len {
			s.unsent = runsLeft{runs: s.unsent.runs[1:]}
		}
	}
	if len(s.unsent.runs) == 0 {
		if s.runs = s.runs[:0]; cap(s.runs) > 64 {
			s.runs, s.unsent = nil, runsLeft{}
		}
	}
}
