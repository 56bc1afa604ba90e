package lineproto

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
	"github.com/flaked/flaked/worker"
)

// Events that epoll watches for. It reports EPOLLHUP and EPOLLERR in any case.
const (
	awaitInput = unix.EPOLLIN | unix.EPOLLRDHUP
	awaitEnd   = unix.EPOLLRDHUP // end of input, which is not read meanwhile
	awaitLoss  = 0               // only the loss of the connection remains
	lost       = unix.EPOLLHUP | unix.EPOLLERR
)

// ready handles the events of a connection.
func (l *loop) ready(ctx context.Context, c *loopConn, events uint32) {
	halfClosed := events&unix.EPOLLRDHUP != 0
	switch c.state {
	case connReading:
		if events&lost != 0 {
			l.close(c) // the client is gone
			return
		}
		c.s.halfClosed = halfClosed
		l.read(ctx, c)
	case connMore, connSleeping:
		c.s.halfClosed = c.s.halfClosed || halfClosed
		l.watch(c, events)
	case connWriting:
		l.flush(c)
	case connLingering:
		if n, e := rawsocket.Recv(c.fd, l.in); n <= 0 && e != syscall.EAGAIN || e != 0 && e != syscall.EAGAIN {
			l.close(c)
		}
	}
}

// setAside makes a connection wait for its turn, or sleep until its session is woken.
func (l *loop) setAside(c *loopConn) {
	if l.stage >= waitless {
		c.s.stopWaiting()
	}
	if c.st == needWake && !c.s.awake() {
		c.state = connSleeping
		return
	}
	l.goOn(c)
}

// goOn puts a connection in the queue.
func (l *loop) goOn(c *loopConn) {
	c.state = connMore
	l.turns.join(&c.place, c.s.order.lacks(), c.s.halfClosed)
}

// watch handles an event of a connection that waits for its turn or for a sequence. It stops watching for
// an event that has been reported: epoll reports input, and the end of input, until it
// is read.
func (l *loop) watch(c *loopConn, events uint32) {
	switch {
	case events&lost != 0:
		l.close(c)
	case c.s.halfClosed:
		l.turns.part(&c.place)
		l.ask(c, awaitLoss)
	default:
		l.ask(c, awaitEnd)
	}
}

// read reads once and answers.
func (l *loop) read(ctx context.Context, c *loopConn) {
	k := copy(l.in, c.rest) // shorter than in, as maxLine is
	n, e := rawsocket.Recv(c.fd, l.in[k:])
	switch {
	case e == syscall.EAGAIN:
		return
	case e != 0:
		l.close(c)
		return
	case n == 0:
		c.eof = true
	case !c.spoken:
		c.spoken = true
		c.extend(unlimited)
	}
	c.late = l.from.draining.Load()
	c.began = l.woke
	l.answer(ctx, c, l.in[:k+n], l.atOnce())
	l.turns.note(c.s.took, c.s.pause != worker.Pause{})
}

// atOnce returns how many IDs a connection may take when its request is read.
func (l *loop) atOnce() int {
	if l.paused && l.waited > 0 { // a request that joins the wait for a clock waits to its end
		return 0
	}
	return l.turns.atOnce()
}

// answer executes the requests in in, up to one flush of output and up to may IDs. Then
// other connections have their turn.
func (l *loop) answer(ctx context.Context, c *loopConn, in []byte, may int) {
	c.s.lend()
	c.s.waited = l.waited
	used, st := c.s.consume(ctx, in, c.eof, may)
	if c.s.took > 0 {
		l.waited = 0
	}
	if c.s.pause != (worker.Pause{}) {
		l.pause(c.s.pause)
	}
	l.worked = c.s.took + len(c.s.out)/bytesOfWork
	l.deliver(c, in[used:], st)
}

// deliver sends the output of a step, which has left the input left unconsumed.
func (l *loop) deliver(c *loopConn, left []byte, st status) {
	c.st = st
	switch {
	case st == failed:
		l.close(c)
		return
	case len(left) == 0:
		c.rest = nil
	case st == needInput:
		c.rest = append([]byte(nil), left...) // not the array of a long read
	case len(c.rest) == 0 || &left[len(left)-1] != &c.rest[len(c.rest)-1]:
		c.rest = append([]byte(nil), left...)
	default:
		c.rest = left
	}
	c.s.fold()
	c.sent = 0
	l.flush(c)
	c.s.measure(c.began)
}

// flush sends as much output as the socket accepts. A client has WriteTimeout to read
// one flush, which is 32 KiB or little more.
func (l *loop) flush(c *loopConn) {
	if c.sent < len(c.s.out) {
		n, errno := rawsocket.Send(c.fd, c.s.out[c.sent:])
		switch {
		case errno == syscall.EAGAIN:
		case errno != 0:
			l.close(c)
			return
		default:
			c.sent += n
		}
		if c.sent < len(c.s.out) {
			l.blocked(c)
			return
		}
		c.extend(unlimited)
	}
	if c.s.buf != nil {
		c.s.giveBack()
		c.s.gather()
	}
	if c.st >= needFlush {
		if c.want == unix.EPOLLOUT {
			l.ask(c, awaitEnd)
		}
		l.setAside(c)
		return
	}
	l.ask(c, awaitInput)
	switch {
	case c.eof:
		l.close(c)
	case c.st == finished, l.stage >= ending:
		l.linger(c)
	default:
		c.state = connReading
	}
}

// blocked makes a connection wait until its client reads.
func (l *loop) blocked(c *loopConn) {
	if c.state == connWriting {
		return
	}
	if !c.s.gather() {
		l.close(c) // it reads nothing, so it cannot be told why
		return
	}
	c.state = connWriting
	c.extend(l.srv.sweeper.write)
	l.ask(c, unix.EPOLLOUT)
}

// ask makes epoll watch for these events only.
func (l *loop) ask(c *loopConn, events uint32) {
	if c.want != events {
		c.want = events
		l.control(unix.EPOLL_CTL_MOD, c.fd, events, c.gen)
	}
}
