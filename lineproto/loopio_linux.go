package lineproto

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
)

// Events that epoll watches for. It reports EPOLLHUP and EPOLLERR in any case.
const (
	awaitInput = unix.EPOLLIN | unix.EPOLLRDHUP
	awaitEnd   = unix.EPOLLRDHUP // end of input, which is not read meanwhile
	awaitLoss  = 0               // only the loss of the connection remains
	lost       = unix.EPOLLHUP | unix.EPOLLERR
)

// ready handles the events of a connection. It returns false if this driver has lost
// the loop meanwhile.
func (d *driver) ready(ctx context.Context, c *loopConn, events uint32) bool {
	halfClosed := events&unix.EPOLLRDHUP != 0
	switch c.state {
	case connReading:
		if events&lost != 0 {
			d.close(c) // the client is gone
			return true
		}
		c.s.halfClosed = halfClosed
		return d.read(ctx, c)
	case connMore, connSleeping:
		c.s.halfClosed = c.s.halfClosed || halfClosed
		d.watch(c, events)
	case connWriting:
		d.flush(c)
	case connLingering:
		if n, e := rawsocket.Recv(c.fd, d.in); n <= 0 && e != syscall.EAGAIN || e != 0 && e != syscall.EAGAIN {
			d.close(c)
		}
	}
	return true
}

// pause makes a connection wait for its turn, or sleep until its session is woken.
func (d *driver) pause(c *loopConn) {
	if d.l.waitsStopped {
		c.s.stopWaiting()
	}
	if c.st == needWake && !c.s.awake() {
		c.state = connSleeping
		return
	}
	d.goOn(c)
}

// goOn puts a connection in the queue.
func (d *driver) goOn(c *loopConn) {
	c.state = connMore
	d.l.queue.join(&c.place, c.s.rank())
}

// wakeAll ends all waits for sequences.
func (d *driver) wakeAll() {
	for _, c := range d.l.conns {
		if c != nil && c.state == connSleeping {
			c.s.stopWaiting()
			d.goOn(c)
		}
	}
}

// watch handles an event of a connection that waits for its turn or for a sequence. It stops watching for
// an event that has been reported: epoll reports input, and the end of input, until it
// is read.
func (d *driver) watch(c *loopConn, events uint32) {
	switch {
	//mutant:w-lost by TestLoopWatchesWaitingConnections -> case false:
	case events&lost != 0:
		d.close(c)
	case c.s.halfClosed:
		d.l.queue.part(&c.place)
		d.ask(c, awaitLoss)
	default:
		d.ask(c, awaitEnd)
	}
}

// read reads once and answers. It returns false if this driver has lost the loop.
func (d *driver) read(ctx context.Context, c *loopConn) bool {
	k := copy(d.in, c.rest) // shorter than in, as MaxLine is
	n, e := rawsocket.Recv(c.fd, d.in[k:])
	switch {
	case e == syscall.EAGAIN:
		return true
	case e != 0:
		d.close(c)
		return true
	case n == 0:
		c.eof = true
	case !c.spoken:
		c.spoken = true
		c.extend(d.l.e.idle)
	}
	c.late = d.l.e.draining.Load()
	c.began = d.woke
	l := d.l
	c.large = false
	if !d.answer(ctx, c, d.in[:k+n], atOnce(l.queue.waiting(numRanks), l.taken, l.queue.scarce)) {
		return false
	}
	l.taken += c.s.took
	return true
}

// answer executes the requests in in, up to one flush of output and up to may IDs. Then
// other connections have their turn. It returns false if this driver has lost the loop.
func (d *driver) answer(ctx context.Context, c *loopConn, in []byte, may int) bool {
	d.lend(c)
	l := d.l
	turn := l.turn.Load() + 1
	l.current = c
	l.turn.Store(turn)
	l.begun()
	used, st := l.e.consume(ctx, &c.s, in, c.eof, may)
	left := in[used:]
	if !l.turn.CompareAndSwap(turn, turn+1) {
		// Another driver has the loop. in is this driver's, which ends: c may keep it.
		c.rest, c.st = left, st
		l.post(func(m *mail) { m.arrived = append(m.arrived, c) })
		return false
	}
	l.queue.note(c.s.took, c.s.waited)
	d.worked = c.s.took + len(c.s.out)/bytesOfWork
	d.deliver(c, left, st)
	return true
}

// deliver sends the output of a step, which has left the input left unconsumed.
func (d *driver) deliver(c *loopConn, left []byte, st status) {
	c.st = st
	switch {
	case st == failed:
		d.close(c)
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
	d.flush(c)
	d.took(c)
}

// flush sends as much output as the socket accepts. A client has WriteTimeout to read
// one flush, which is 32 KiB or little more.
func (d *driver) flush(c *loopConn) {
	e := d.l.e
	if c.sent < len(c.s.out) {
		n, errno := rawsocket.Send(c.fd, c.s.out[c.sent:])
		switch {
		case errno == syscall.EAGAIN:
		case errno != 0:
			d.close(c)
			return
		default:
			c.sent += n
		}
		if c.sent < len(c.s.out) {
			d.blocked(c)
			return
		}
		c.extend(e.idle)
	}
	if c.out != nil {
		d.giveBack(c)
		c.s.gather()
	}
	if c.st >= needFlush {
		if c.want == unix.EPOLLOUT {
			d.ask(c, awaitEnd)
		}
		d.pause(c)
		return
	}
	d.ask(c, awaitInput)
	switch {
	case c.eof:
		d.close(c)
	case c.st == finished, d.l.stage >= ending:
		d.linger(c)
	default:
		c.state = connReading
	}
}

// blocked makes a connection wait until its client reads. If the flush holds only IDs
// of a long reply and none of it has been sent, their text is dropped and rendered
// again later.
func (d *driver) blocked(c *loopConn) {
	if c.state == connWriting {
		return
	}
	if !c.s.gather() {
		d.close(c) // it reads nothing, so it cannot be told why
		return
	}
	c.state = connWriting
	c.extend(d.l.e.write)
	d.ask(c, unix.EPOLLOUT)
	//mutant:w-unread by TestLoopKeepsNoText -> if false {
	if c.sent == 0 && c.s.unrender() {
		d.giveBack(c)
	}
}

// ask makes epoll watch for these events only.
func (d *driver) ask(c *loopConn, events uint32) {
	if c.want != events {
		c.want = events
		d.l.control(unix.EPOLL_CTL_MOD, c.fd, events, c.gen)
	}
}

// lend gives a connection a buffer for its output.
func (d *driver) lend(c *loopConn) {
	c.out, d.spare = d.spare, nil
	if c.out == nil {
		c.out = d.l.e.srv.outBufs.Get().(*[]byte)
	}
	c.s.out = (*c.out)[:0]
}

// giveBack takes back the output buffer of a connection. A buffer that a long STATS has
// grown is dropped.
func (d *driver) giveBack(c *loopConn) {
	if cap(c.s.out) <= 4*outBuf {
		*c.out = c.s.out[:0]
		if d.spare == nil {
			d.spare = c.out
		} else {
			d.l.e.srv.outBufs.Put(c.out)
		}
	}
	c.out, c.s.out = nil, nil
}
