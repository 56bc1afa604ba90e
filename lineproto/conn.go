package lineproto

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"go.uber.org/atomic"
)

// Buffers. Small holds the longest unfinished line with room to read on, and
// the usual batch; big serves what is left of a batch that was longer.
const (
	smallBuf = 1 << 10
	bigBuf   = 16 << 10
	outBuf   = outBound + 8<<10
)

// conn is one connection and the goroutine that reads, answers and writes.
type conn struct {
	e  *engine
	nc net.Conn
	s  session

	// due is the tick at which the sweeper interrupts what is under way.
	due   atomic.Int64
	until int64 // due, for as long as the client has yet to authenticate
	late  bool  // draining had begun before the last read

	began int64 // when the last read returned, as of elapsed
	place place[chan struct{}]
	turn  bool // it has the turn

	in    []byte // small[:] or big[:]
	r, w  int    // in[r:w] is read and not consumed
	big   *[bigBuf]byte
	small [smallBuf]byte
}

func newConn(e *engine, nc net.Conn) *conn {
	c := &conn{e: e, nc: nc, s: session{srv: e.srv}}
	c.in = c.small[:]
	return c
}

// begin gives the client so many ticks for its first request, and for a token
// where one is asked for.
func (c *conn) begin(ticks int64) {
	c.until = c.e.tick.Load() + ticks
	c.due.Store(c.until)
}

// extend gives the client so many ticks from now on, for whatever it does. One
// that has yet to authenticate gets no more than it had.
func (c *conn) extend(ticks int64) {
	due := c.e.tick.Load() + ticks
	if c.s.locked() {
		due = min(due, c.until)
	}
	c.due.Store(due)
}

// serve is a connection's life. Deadlines are the sweeper's business but for
// the one store before and after a write.
func (c *conn) serve(ctx context.Context) {
	defer c.s.end()
	defer c.putBig()
	for first, eof := true, false; ; {
		c.late = c.e.draining.Load()
		n, err := c.fill()
		switch {
		case n > 0:
			if first {
				first = false
				c.extend(c.e.idle)
			}
		case err == io.EOF:
			eof = true
		default:
			c.ended(err)
			return
		}
		if c.e.srv.cfg.Measure {
			c.began = c.e.srv.elapsed()
		}
		if !c.answer(ctx, eof) {
			return
		}
	}
}

// ended deals with a connection whose reading failed.
func (c *conn) ended(err error) {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return // the client is gone
	}
	c.parting()
	switch {
	case !c.e.draining.Load():
		c.e.srv.counters.idle.Inc()
	case c.late:
		// It has been active within drainGrace and may have sent more by now.
		c.linger()
	default:
		// One that was idle all that time has most likely not, and is not waited
		// for any longer: but what is there already is read, as a close that
		// leaves it resets the connection.
		c.lingerOn(c.nc, time.Now().Add(drainGrace))
	}
}

// answer executes what has been read and writes the replies. It reports
// whether the connection goes on.
func (c *conn) answer(ctx context.Context, eof bool) bool {
	st := needFlush
	for may := c.atOnce(); st == needFlush; {
		ok := false
		if st, ok = c.step(ctx, eof, may); !ok {
			return false
		}
		if c.s.order.n == 0 {
			may = c.atOnce()
			continue
		}
		if may, ok = c.await(ctx); !ok {
			return false
		}
	}
	switch {
	case eof:
		c.parting()
	case st == finished:
		c.linger()
	}
	return st == needInput && !eof
}

// atOnce returns how many IDs may be taken without a turn.
func (c *conn) atOnce() int { return c.e.srv.relay.atOnce(c.e.srv.cfg.Backend.Waits()) }

// await waits for the turn and returns how many IDs may be taken in it. It returns
// false if the client is gone or the server ends. The connection has no output
// buffer meanwhile.
func (c *conn) await(ctx context.Context) (may int, ok bool) {
	o, relay := &c.s.order, &c.e.srv.relay
	may, err := relay.take(ctx, &c.place, o.lacks(), c.s.rank())
	if err != nil {
		return 0, false
	}
	if o.n > smallOrder {
		var gone bool
		if c.s.halfClosed, gone = peerState(c.nc); gone {
			relay.pass(0)
			return 0, false
		}
	}
	c.turn = true
	return may, true
}

// step answers up to one flush of output, and passes the turn if it has it. It
// reports whether the connection goes on.
func (c *conn) step(ctx context.Context, eof bool, may int) (st status, ok bool) {
	out := c.e.srv.outBufs.Get().(*[]byte)
	c.s.out = (*out)[:0]
	used, st := c.e.consume(ctx, &c.s, c.in[c.r:c.w], eof, may)
	c.r += used
	if c.turn {
		c.turn = false
		c.e.srv.relay.pass(c.s.took)
	}
	if st == failed || !c.flush() {
		return st, false // the buffer goes with the connection
	}
	// A STATS of unusual length is not kept.
	if cap(c.s.out) <= 4*outBuf {
		*out = c.s.out
		c.e.srv.outBufs.Put(out)
	}
	c.s.out = nil
	return st, true
}

// flush writes the output and empties it.
func (c *conn) flush() bool {
	if len(c.s.out) == 0 {
		return true
	}
	c.s.fold()
	c.extend(c.e.write)
	_, err := c.nc.Write(c.s.out)
	c.extend(c.e.idle)
	c.s.out = c.s.out[:0]
	if n := c.s.counts.untimed; n > 0 && c.e.srv.cfg.Measure {
		c.s.counts.untimed = 0
		c.e.srv.counters.durations.add(c.e.srv.elapsed()-c.began, n)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.e.srv.counters.slow.Inc()
	}
	return err == nil
}

// fill reads once, behind what is left of the input. It goes to a big buffer
// only while the last read left none of the present one free, so a connection
// that waits holds a small one.
func (c *conn) fill() (int, error) {
	rest := c.in[c.r:c.w] // shorter than small: a line's limit sees to that
	switch full := c.w == len(c.in); {
	case full && c.big == nil:
		c.big = c.e.srv.bigBufs.Get().(*[bigBuf]byte)
		c.in = c.big[:]
		copy(c.in, rest)
	case !full && c.big != nil:
		c.in = c.small[:]
		copy(c.in, rest)
		c.putBig()
	default:
		copy(c.in, rest)
	}
	c.r, c.w = 0, len(rest)
	n, err := c.nc.Read(c.in[c.w:])
	c.w += n
	return n, err
}

func (c *conn) putBig() {
	if c.big != nil {
		c.e.srv.bigBufs.Put(c.big)
		c.big = nil
	}
}

// linger ends a connection from this side and reads on, discarding, until the
// client closes or a second has passed. To close a socket that has unread
// input makes the kernel reset it, and a reset overtakes the last replies.
func (c *conn) linger() {
	c.lingerOn(c.nc, noDeadline)
}

// lingerOn is linger, by deadline if no byte comes before that.
func (c *conn) lingerOn(nc net.Conn, deadline time.Time) {
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.due.Store(c.e.tick.Load() + c.e.linger)
	nc.SetReadDeadline(deadline) // in the place of draining's
	for {
		if _, err := nc.Read(c.small[:]); err != nil {
			return
		}
		if deadline != noDeadline {
			// Once: from here on the deadline is the sweeper's.
			deadline = noDeadline
			nc.SetReadDeadline(deadline)
		}
	}
}
