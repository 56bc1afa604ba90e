package lineproto

// loopConn is a connection of a loop. While it is away it is the goroutine's
// that keeps it, but for state.
type loopConn struct {
	l       *loop
	fd      int
	gen     int32 // tells it from others that had its descriptor
	state   connState
	refused bool   // over MaxConns: told BUSY and closed
	large   bool   // has a turn for a large order
	spoken  bool   // something has been received
	late    bool   // and after draining had begun
	eof     bool   // nothing more will be
	want    uint32 // what epoll is asked for
	began   int64  // when the last of its requests was noticed, as of elapsed
	due     int64  // the tick at which it is closed
	until   int64  // due, for as long as the client has yet to authenticate

	rest  []byte // received and not done with
	st    status // what the session wants when its output has been sent
	out   *[]byte
	sent  int // bytes of s.out
	place place[*loopConn]
	s     session
}

type connState uint8

const (
	connReading   connState = iota
	connMore                // in the queue, for there is more to do
	connWriting             // waiting for the client to read
	connLingering           // ended; reads on so that the client sees the last reply
	connAway                // with a goroutine of its own
	connClosed
)

func newLoopConn(l *loop, fd int, due int64, refused bool) *loopConn {
	due += l.e.tick.Load()
	c := &loopConn{l: l, fd: fd, refused: refused, s: session{srv: l.e.srv}, due: due, until: due}
	c.place.owner = c
	return c
}

// extend is conn.extend.
func (c *loopConn) extend(ticks int64) {
	c.due = c.l.e.tick.Load() + ticks
	if c.s.locked() {
		c.due = min(c.due, c.until)
	}
}
