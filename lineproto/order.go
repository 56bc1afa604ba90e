package lineproto

import (
	"context"
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
	// waits is set when the order did not get all of its IDs when it was read.
	waits bool
	// accepted is set while the server's backlog counts the IDs that the order lacks.
	accepted bool
}

// rest holds the IDs of a reply that are not in out yet: those of runs, without the
// first done IDs of runs[0].
type rest struct {
	runs []worker.Run
	done int
}

func (o *order) lacks() int { return o.n - o.got }

// rank returns the line that the session waits in.
func (s *session) rank() rank { return rankOf(s.order.lacks(), s.halfClosed) }

// begin begins an order. An order for more than s.may IDs gets none yet and waits for
// its turn.
func (s *session) begin(o order) {
	if s.order = o; o.n > s.may {
		s.wait()
	}
}

// wait ends the turn. The order waits for the next one.
func (s *session) wait() {
	s.order.waits = true
	s.may = 0
}

// fill reserves IDs for the order and reports whether the order is done. If it is not, the
// tick has run out or the slice is used up. The rest of the order waits for the next turn,
// so no turn waits for more than one tick.
func (s *session) fill(ctx context.Context) (done bool) {
	if s.may == 0 {
		return false
	}
	o := &s.order
	e := s.accept()
	for e == nil && o.lacks() > 0 && s.may > 0 {
		e = s.take(ctx, min(o.lacks(), s.may))
	}
	switch {
	case e != nil:
		s.fail(e)
	case o.lacks() == 0:
		s.finish()
	default:
		s.wait()
		return false
	}
	return true
}

// accept adds an order that has waited to the backlog, or returns the reason for
// refusing it.
func (s *session) accept() *ids.ReplyError {
	o := &s.order
	if !o.waits || o.accepted {
		return nil
	}
	lacks, ceiling := int64(o.lacks()), s.srv.cfg.Backend.Ceiling()
	if backlog := s.srv.backlog.Add(lacks) - lacks; !admits(backlog, lacks, ceiling, s.halfClosed) {
		s.srv.backlog.Add(-lacks)
		return replies.New(ids.BUSY, fmt.Sprintf("clients are waiting for too many IDs. Retry later. limit_ids=%d",
			ceiling))
	}
	o.accepted = true
	return nil
}

// take reserves up to n IDs for the order. If it ends the turn because the tick has run out,
// it sets may to 0.
func (s *session) take(ctx context.Context, n int) *ids.ReplyError {
	r, e := s.reserve(ctx, n)
	if e != nil || r.Len == 0 {
		return e
	}
	o := &s.order
	o.got += r.Len
	s.may -= r.Len
	s.took += r.Len
	if r.Len < n && !s.loop {
		s.may = 0 // the next reservation would wait
	}
	if o.accepted {
		s.srv.backlog.Add(-int64(r.Len))
	}
	if o.each {
		s.out = s.fr.ids(s.out, r)
		s.counts.add(s, o.index, resultOK, int64(r.Len))
		s.counts.issued(s, 1, int64(r.Len))
		return nil
	}
	// Joining neighbours keeps the runs few when a Backend's are short.
	if k := len(s.runs) - 1; k >= 0 && s.runs[k].Step == r.Step && s.runs[k].At(s.runs[k].Len) == r.First {
		s.runs[k].Len += r.Len
	} else {
		s.runs = append(s.runs, r)
	}
	return nil
}

// reserve reserves up to n IDs and checks their number. In a loop it never waits: if there is no
// ID now, it notes the pause, ends the turn and returns an empty Run.
func (s *session) reserve(ctx context.Context, n int) (r worker.Run, e *ids.ReplyError) {
	var err error
	if s.loop {
		r, s.pause, err = s.srv.cfg.Backend.Try(n, s.waited)
	} else {
		r, err = s.srv.cfg.Backend.Reserve(ctx, n)
	}
	switch {
	case err != nil:
		return r, replies.Of(err)
	case r.Len == 0 && s.pause.For > 0:
		s.may = 0
	case r.Len < 1 || r.Len > n:
		return r, replies.New(ids.NOTREADY, fmt.Sprintf(
			"internal error: the node reserved %d of %d IDs. Try another node", r.Len, n))
	}
	return r, nil
}

// finish begins the reply to an order that has all of its IDs.
func (s *session) finish() {
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
	s.left = rest{runs: s.runs}
}

// fail answers an order with an error. IDs that were reserved for the order are lost,
// which does no harm. The error answers all remaining requests of a stretch, because
// each new try might wait.
func (s *session) fail(e *ids.ReplyError) {
	o := s.order
	s.drop()
	n := 1
	if o.each {
		n = o.lacks()
	}
	s.counts.add(s, o.index, resultOf(e), int64(n))
	for range n {
		s.out = s.fr.fail(s.out, e)
	}
}

// drop ends an order that is not answered.
func (s *session) drop() {
	if s.order.accepted {
		s.srv.backlog.Add(-int64(s.order.lacks()))
	}
	s.order = order{}
	s.runs = s.runs[:0]
}

// render appends remaining IDs of a reply to out, until all are in it or it holds
// outBound bytes.
func (s *session) render() {
	for len(s.left.runs) > 0 && len(s.out) < outBound {
		r := s.left.runs[0]
		r.First, r.Len = r.At(s.left.done), min(r.Len-s.left.done, max(1, (outBound-len(s.out))/idLine))
		s.out = s.fr.ids(s.out, r)
		if s.left.done += r.Len; s.left.done == s.left.runs[0].Len {
			s.left = rest{runs: s.left.runs[1:]}
		}
	}
	if len(s.left.runs) == 0 {
		if s.runs = s.runs[:0]; cap(s.runs) > 64 {
			s.runs, s.left = nil, rest{}
		}
	}
}
