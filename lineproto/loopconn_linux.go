package lineproto

// loopConn is a connection of a loop.
type loopConn struct {
	l       *loop
	fd      int
	gen     int32 // differs from earlier users of fd
	state   connState
	refused bool // over MaxConns: told BUSY and closed
	// spoken is set when something has been received. late is set if draining had begun
	// before the last read. eof is set when the client has sent its last byte.
	spoken bool
	late   bool
	eof    bool
	want   uint32 // events epoll looks for
	// began is when its last input was noticed, in ns of Server.elapsed.
	began int64
	due   int64 // the tick at which it is closed
	until int64 // the greatest due before the client has authenticated

	rest  []byte // received and not consumed
	st    status // what the session wants when its output has been sent
	sent  int    // bytes of s.out that have been sent
	place place
	s     session
}

type connState uint8

const (
	connReading   connState = iota
	connMore                // in the queue, with more to do
	connWriting             // waiting for the client to read
	connSleeping            // until its session is woken
	connLingering           // reads on until the client has seen the end
	connClosed
)

func newLoopConn(l *loop, fd int, due int64, refused bool) *loopConn {
	due += l.srv.sweeper.tick.Load()
	c := &loopConn{l: l, fd: fd, refused: refused, s: session{srv: l.srv, loop: true}, due: due, until: due}
	c.place.owner = c
	c.s.conn = c
	return c
}

// wake makes the loop go on with the connection if it sleeps. It does nothing after the end of the loop.
func (c *loopConn) wake() { c.l.post(func(m *mail) { m.woken = append(m.woken, c) }) }

// extend does what conn.extend does.
func (c *loopConn) extend(ticks int64) {
	c.due = c.s.srv.sweeper.tick.Load() + ticks
	if c.s.locked() {
		c.due = min(c.due, c.until)
	}
}
