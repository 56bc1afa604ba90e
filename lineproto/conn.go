package lineproto

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Sizes of buffers, in bytes. One for input holds the longest unfinished line with room to read
// on. The connections of a loop share one. An output buffer has room for one flush.
const (
	connBuf = 4 << 10
	loopBuf = 17 << 10
	outBuf  = outBound + 8<<10
)

// conn is one connection that a goroutine of its own reads, answers and writes.
type conn struct {
	l  *listener // that has accepted it
	nc net.Conn
	s  session

	// due is the tick at which the sweeper interrupts a read or write that is under way. At unlimited or above, the
	// connection ends only to make room.
	due   atomic.Int64
	until int64 // the greatest due before the client has authenticated
	late  bool  // draining had begun before the last read

	// began is when the last read returned, in ns of Server.elapsed.
	began int64
	place place
	woken signal // the session has been woken, or has the turn

	in   [connBuf]byte
	r, w int // in[r:w] is read and not consumed
}

func newConn(l *listener, nc net.Conn) *conn {
	c := &conn{l: l, nc: nc, s: session{srv: l.srv}, woken: make(signal, 1)}
	c.s.waker = c.woken
	return c
}

// awaitFirst sets the deadline of the client's first request, and of its token if it needs
// one: this many ticks from now.
func (c *conn) awaitFirst(ticks int64) {
	c.until = c.s.srv.sweeper.tick.Load() + ticks
	c.due.Store(c.until)
}

// extend moves the deadline to this many ticks from now. Before the client has
// authenticated, the deadline never exceeds until.
func (c *conn) extend(ticks int64) {
	due := c.s.srv.sweeper.tick.Load() + ticks
	if c.s.locked() {
		due = min(due, c.until)
	}
	c.due.Store(due)
}

// serve reads, answers and writes until the connection ends. The sweeper enforces
// deadlines: a write costs two stores of due and no timer.
func (c *conn) serve(ctx context.Context) {
	defer c.s.end()
	for first, eof := true, false; ; {
		c.late = c.l.draining.Load()
		n, err := c.fill()
		switch {
		case n > 0:
			if first {
				first = false
				c.extend(unlimited)
			}
		case err == io.EOF:
			eof = true
		default:
			c.ended(err)
			return
		}
		c.began = c.l.srv.elapsed()
		if !c.answer(ctx, eof) {
			return
		}
	}
}

// ended ends a connection whose read failed.
func (c *conn) ended(err error) {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return // the client is gone
	}
	c.parting()
	switch {
	case !c.l.draining.Load():
		c.l.srv.counters.idle.Add(1)
	case c.late:
		// The client was active within drainGrace and may have sent more by now.
		c.linger()
	default:
		// A client that was idle during drainGrace has most likely sent nothing, and
		// linger would delay the end. Input that has arrived must still be read: a
		// close with unread input resets the connection.
		c.lingerOn(c.nc, time.Now().Add(drainGrace))
	}
}

// answer executes the requests that have been read and writes the replies. It reports
// whether the connection goes on.
func (c *conn) answer(ctx context.Context, eof bool) bool {
	then := needFlush
	for allowed := c.atOnce(); then >= needFlush; {
		ok := false
		if then, ok = c.step(ctx, eof, allowed); !ok {
			return false
		}
		if then == needWake && !c.awaitSequence(ctx) {
			return false
		}
		if c.s.order.n == 0 {
			allowed = c.atOnce()
			continue
		}
		if allowed, ok = c.awaitTurn(ctx); !ok {
			return false
		}
	}
	switch {
	case eof:
		c.parting()
	case then == finished:
		c.linger()
	}
	return then == needInput && !eof
}

// atOnce returns how many IDs may be taken without a turn.
func (c *conn) atOnce() int {
	s := c.l.srv
	if waits := s.cfg.Backend.Waits(); waits != s.seenWaits.Load() {
		s.seenWaits.Store(waits)
		s.turns.note(0, true)
	}
	return s.turns.atOnce()
}

// awaitTurn waits for the turn and returns how many IDs may be taken in it. It returns
// false if the client is gone or the server cuts its connections. The connection has no
// output buffer while it waits.
func (c *conn) awaitTurn(ctx context.Context) (allowed int, ok bool) {
	o, turns := &c.s.order, &c.l.srv.turns
	if turns.acquire(ctx, &c.place, c.woken, o.lacks(), c.s.halfClosed) != nil {
		return 0, false
	}
	if o.n > smallOrder {
		var gone bool
		if c.s.halfClosed, gone = peerState(c.nc); gone {
			turns.release(&c.place, 0)
			return 0, false
		}
	}
	return c.place.allowed, true
}

// awaitSequence waits until the session is woken, or must no longer wait for a sequence. It returns
// false if the server cuts its connections. A connection that waits for the node is not
// idle, so the sweeper leaves it alone.
func (c *conn) awaitSequence(ctx context.Context) bool {
	c.due.Store(math.MaxInt64)
	defer c.extend(unlimited)
	for !c.s.awake() {
		select {
		case <-c.woken:
		case <-c.l.stopWaits:
			c.s.stopWaiting()
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// step answers up to one flush of output, and passes the turn on if the connection has
// it. It reports whether the connection goes on.
func (c *conn) step(ctx context.Context, eof bool, allowed int) (then after, ok bool) {
	c.s.takeBuffer()
	used, then := c.s.consume(ctx, c.in[c.r:c.w], eof, allowed)
	c.r += used
	if c.place.allowed > 0 {
		c.l.srv.turns.release(&c.place, c.s.took)
	}
	if then == failed || !c.flush() {
		return then, false // the buffer is not reused
	}
	c.s.returnBuffer()
	return then, true
}

// flush writes the output and empties it. It returns false if the write failed.
func (c *conn) flush() bool {
	if len(c.s.out) == 0 {
		return true
	}
	c.s.fold()
	if !c.s.countMemory() {
		return false
	}
	c.extend(c.s.srv.sweeper.write)
	_, err := c.nc.Write(c.s.out)
	c.extend(unlimited)
	c.s.out = c.s.out[:0]
	c.s.countMemory()
	c.s.measure(c.began)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.l.srv.counters.slow.Add(1)
	}
	return err == nil
}

// fill reads once, behind the input that is left. That is shorter than in, as maxLine is.
func (c *conn) fill() (int, error) {
	c.r, c.w = 0, copy(c.in[:], c.in[c.r:c.w])
	n, err := c.nc.Read(c.in[c.w:])
	c.w += n
	return n, err
}

// linger closes the sending side and discards input until the client closes or a second
// (lingerTime) has passed. A close of a socket with unread input makes the kernel reset
// the connection, and a reset overtakes the last replies.
func (c *conn) linger() {
	c.lingerOn(c.nc, noDeadline)
}

// lingerOn does what linger does, on nc. It stops at deadline if no byte has come by
// then.
func (c *conn) lingerOn(nc net.Conn, deadline time.Time) {
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.due.Store(c.s.srv.sweeper.tick.Load() + c.s.srv.sweeper.linger)
	nc.SetReadDeadline(deadline) // replaces drain's deadline
	for {
		if _, err := nc.Read(c.in[:]); err != nil {
			return
		}
		if deadline != noDeadline {
			// The client is still sending: only the sweeper ends the wait now.
			deadline = noDeadline
			nc.SetReadDeadline(deadline)
		}
	}
}
