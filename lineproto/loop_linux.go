package lineproto

import (
	"context"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
	"github.com/flaked/flaked/worker"
)

// maxEvents is the most events that a loop receives from epoll at once.
const maxEvents = 128

// loop serves many connections from one goroutine. epoll reports which connections have
// sent something, and each of them gets one recv and one send. A core answers 1.5 times
// as many requests as with a goroutine for each connection.
//
// Fields that are neither atomic nor guarded by mu belong to that goroutine, which is in run.
// Nothing blocks it but epoll: while there are no IDs, the loop serves other requests and
// waits for a timer.
//
// A listener without a loop has a nil one. The methods that a listener calls do nothing then.
type loop struct {
	srv      *Server
	listener *listener // whose connections it serves
	epfd     int
	wakefd   int // an eventfd: there is mail
	timerfd  int // the end of a pause

	conns []*loopConn // by descriptor
	open  int         // open connections
	gen   int32       // of the connection adopted last
	swept int         // descriptors that the sweep has looked at
	toEnd *surplus    // of the sweep
	stage stage       // of draining

	turns turns // of connections with more work than a turn
	// paused is set while no IDs can be made. waited is the time for which requests have waited for
	// a clock that went back, since the last ID.
	paused bool
	waited time.Duration
	// worked is the work of the last turn, in the units of roundOfWork.
	worked int

	// Buffers of the goroutine. A connection has a buffer of its own only while input or
	// output is left over.
	in     []byte
	events []unix.EpollEvent

	// woke is when epoll last returned events, in ns of Server.elapsed.
	woke   int64
	yields yields

	mu     sync.Mutex // guards mail, woken and closed
	mail   mail
	woken  bool // wakefd was written to since the last collect
	closed bool // wakefd is closed
}

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
	due   int64 // the tick at which it is closed: see conn.due
	until int64 // the greatest due before the client has authenticated

	rest  []byte // received and not consumed
	then  after  // what the session wants when its output has been sent
	sent  int    // bytes of s.out that have been sent
	place place
	s     session
}

type connState uint8

const (
	connReading   connState = iota
	connQueued              // waiting for a turn, with more to do
	connWriting             // waiting for the client to read
	connSleeping            // until its session is woken
	connLingering           // reads on until the client has seen the end
	connClosed
)

// newLoopConn returns a connection whose client has this many ticks for its first request.
func newLoopConn(l *loop, fd int, ticks int64, refused bool) *loopConn {
	due := l.srv.sweeper.tick.Load() + ticks
	c := &loopConn{l: l, fd: fd, refused: refused, s: session{srv: l.srv, mustNotBlock: true}, due: due, until: due}
	c.place.owner = c
	c.s.waker = c
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

// start starts the loop. calls is the context of its Backend calls. The loop ends after drainTo.
func (l *loop) start(calls context.Context, wg *sync.WaitGroup) {
	if l != nil {
		wg.Go(func() { l.run(calls) })
	}
}

// run serves the loop until draining has ended its last connection.
func (l *loop) run(ctx context.Context) {
	for l.stage == stageServing || l.open > 0 {
		n := l.wait()
		l.woke = l.srv.elapsed()
		for _, ev := range l.events[:n] {
			switch int(ev.Fd) {
			case l.wakefd:
				l.obey(l.collect())
				continue
			case l.timerfd:
				l.paused = false
				continue
			}
			// An earlier event of this round may have closed the connection, and
			// another one may have its descriptor.
			if c := l.conns[ev.Fd]; c != nil && c.gen == ev.Pad {
				l.ready(ctx, c, ev.Events)
			}
		}
		l.sweep()
		l.giveTurns(ctx)
	}
}

const (
	// roundOfWork is how much work a loop does in turns before it polls for
	// events. The unit is one reserved ID. 16 bytes of output count as one unit, and
	// a turn counts as 64 units at least.
	roundOfWork = roundOfIDs
	leastWork   = 64
	bytesOfWork = 16
)

// giveTurns gives turns to connections that wait. It stops after a round of work.
func (l *loop) giveTurns(ctx context.Context) {
	for left := roundOfWork; left > 0; {
		p := l.turns.next(l.ranksServed())
		if p == nil {
			if !l.paused {
				l.waited = 0 // nobody waits for the clock any more
			}
			return
		}
		c, allowed := p.owner.(*loopConn), p.allowed
		if l.paused {
			allowed = 0 // it has had other work: its next order joins the wait
		}
		l.answer(ctx, c, c.rest, allowed)
		l.turns.done(p, c.s.took, l.paused)
		left -= max(l.worked, leastWork)
	}
}

// ranksServed returns the first rank that gets no turns: that of orders for IDs, while there are none.
func (l *loop) ranksServed() rank {
	if l.paused {
		return rankTiny
	}
	return numRanks
}

// pause gives no turns to orders until the time of a Pause has passed.
func (l *loop) pause(p worker.Pause) {
	l.paused = true
	if p.Rollback {
		l.waited += p.For
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(p.For), 1))} // 0 would stop the timer
	if err := unix.TimerfdSettime(l.timerfd, 0, &at, nil); err != nil {
		l.srv.cfg.Logger.Error("failed to set a timer", "error", os.NewSyscallError("timerfd_settime", err))
		l.paused = false
	}
}

// wait returns the number of events in l.events. It polls before it blocks: under load
// there mostly is an event, and a call that may block makes Go's scheduler do work. It
// does not block while connections wait for their turn or a sweep is unfinished.
func (l *loop) wait() int {
	n := rawsocket.Poll(l.epfd, l.events)
	if n > 0 || l.turns.waiting(l.ranksServed()) > 0 || l.swept < len(l.conns) {
		return n
	}
	if l.yields.due(l.woke) {
		runtime.Gosched()
	}
	return rawsocket.Wait(l.epfd, l.events, -1)
}

// yields decides when a loop yields to Go's scheduler, which begins a new turn of the loop's goroutine.
//
// For Go a turn of 10 ms is a long one. Its monitor thread then takes the processor away in each wait, and looks for
// the next wait every 20 us. At 5,000 requests a second that is a quarter of the processor time of a request.
//
// A loop with long waits must not yield. Go takes the processor away in a wait of 10 ms in any turn. In a new turn it
// does so after the 10 ms only, and until then its monitor thread looks sixty times.
type yields struct {
	// since is the time of the last yield, or of the last decision not to yield. last is the time of the last wait.
	// Both are in ns of Server.elapsed.
	since, last int64
	mean        int64 // from one wait to the next, over about 16 of them
}

const (
	// yieldEvery is less than half of a long turn: a wait before the next yield may be that long, too.
	yieldEvery = int64(4 * time.Millisecond)
	// A loop with a mean of longWait or more does not yield. A longer wait than longestWait counts as longestWait.
	longWait, longestWait = int64(4 * time.Millisecond), int64(10 * time.Millisecond)
)

// due reports whether the loop must yield before it waits. now is the time at which the loop last woke. With one
// processor for Go, any wait of 20 us costs the loop its processor, and a yield would gain nothing.
func (y *yields) due(now int64) bool {
	y.mean += (min(now-y.last, longestWait) - y.mean) / 16
	y.last = now
	if now-y.since < yieldEvery {
		return false
	}
	y.since = now
	return y.mean < longWait && runtime.GOMAXPROCS(0) > 1
}

// Events that epoll watches for. It reports EPOLLHUP and EPOLLERR in any case.
const (
	awaitInput = unix.EPOLLIN | unix.EPOLLRDHUP
	awaitEnd   = unix.EPOLLRDHUP // end of input, which is not read meanwhile
	awaitLoss  = 0               // only the loss of the connection remains
	lost       = unix.EPOLLHUP | unix.EPOLLERR
)

// ready handles the events of a connection. It receives once what the client has sent, and answers.
func (l *loop) ready(ctx context.Context, c *loopConn, events uint32) {
	halfClosed := events&unix.EPOLLRDHUP != 0
	switch c.state {
	case connReading:
	case connQueued, connSleeping:
		c.s.halfClosed = c.s.halfClosed || halfClosed
		l.stillWaits(c, events)
		return
	case connWriting:
		l.flush(c)
		return
	case connLingering:
		if n, e := rawsocket.Recv(c.fd, l.in); n <= 0 && e != syscall.EAGAIN || e != 0 && e != syscall.EAGAIN {
			l.close(c)
		}
		return
	default:
		return
	}
	if events&lost != 0 {
		l.close(c) // the client is gone
		return
	}
	c.s.halfClosed = halfClosed
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
	c.late = l.listener.draining.Load()
	c.began = l.woke
	l.answer(ctx, c, l.in[:k+n], l.atOnce())
	l.turns.note(c.s.took, c.s.pause != worker.Pause{})
}

// setAside makes a connection wait for its turn, or sleep until its session is woken.
func (l *loop) setAside(c *loopConn) {
	if l.stage >= stageWaitless {
		c.s.stopWaiting()
	}
	if c.then == needWake && !c.s.awake() {
		c.state = connSleeping
		return
	}
	l.goOn(c)
}

// goOn lets a connection wait for its turn.
func (l *loop) goOn(c *loopConn) {
	c.state = connQueued
	l.turns.join(&c.place, c.s.order.lacks(), c.s.halfClosed)
}

// stillWaits handles an event of a connection that waits for its turn or for a sequence. It stops watching for
// an event that has been reported: epoll reports input, and the end of input, until it
// is read.
func (l *loop) stillWaits(c *loopConn, events uint32) {
	switch {
	case events&lost != 0:
		l.close(c)
	case c.s.halfClosed:
		l.turns.moveToLeaving(&c.place)
		l.watchFor(c, awaitLoss)
	default:
		l.watchFor(c, awaitEnd)
	}
}

// atOnce returns how many IDs a connection may take when its request is read.
func (l *loop) atOnce() int {
	if l.paused && l.waited > 0 { // a request that joins the wait for a clock waits to its end
		return 0
	}
	return l.turns.atOnce()
}

// answer executes the requests in in, up to one flush of output and up to allowed IDs. Then
// other connections have their turn.
func (l *loop) answer(ctx context.Context, c *loopConn, in []byte, allowed int) {
	c.s.takeBuffer()
	c.s.waited = l.waited
	used, then := c.s.consume(ctx, in, c.eof, allowed)
	if c.s.took > 0 {
		l.waited = 0
	}
	if c.s.pause != (worker.Pause{}) {
		l.pause(c.s.pause)
	}
	l.worked = c.s.took + len(c.s.out)/bytesOfWork
	l.deliver(c, in[used:], then)
}

// deliver sends the output of a step, which has left the input left unconsumed.
func (l *loop) deliver(c *loopConn, left []byte, then after) {
	c.then = then
	switch {
	case then == failed:
		l.close(c)
		return
	case len(left) == 0:
		c.rest = nil
	case then >= needFlush && endsAlike(left, c.rest):
		c.rest = left // the end of what it has kept
	default: // left is in the buffer of all connections, or at the end of a long array
		c.rest = append([]byte(nil), left...)
	}
	c.s.fold()
	c.sent = 0
	l.flush(c)
	c.s.measure(c.began)
}

// endsAlike reports whether two slices, of which a is not empty, end at the same byte in memory.
func endsAlike(a, b []byte) bool { return len(b) > 0 && &a[len(a)-1] == &b[len(b)-1] }

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
		c.s.returnBuffer()
		c.s.countMemory()
	}
	if c.then >= needFlush {
		if c.want == unix.EPOLLOUT {
			l.watchFor(c, awaitEnd)
		}
		l.setAside(c)
		return
	}
	l.watchFor(c, awaitInput)
	switch {
	case c.eof:
		l.close(c)
	case c.then == finished, l.stage >= stageEnding:
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
	if !c.s.countMemory() {
		l.close(c) // it reads nothing, so it cannot be told why
		return
	}
	c.state = connWriting
	c.extend(l.srv.sweeper.write)
	l.watchFor(c, unix.EPOLLOUT)
}

// watchFor makes epoll watch for these events only.
func (l *loop) watchFor(c *loopConn, events uint32) {
	if c.want != events {
		c.want = events
		l.control(unix.EPOLL_CTL_MOD, c.fd, events, c.gen)
	}
}

// linger closes the sending side and discards input, as conn.linger does.
func (l *loop) linger(c *loopConn) {
	if unix.Shutdown(c.fd, unix.SHUT_WR) != nil {
		l.close(c)
		return
	}
	c.state = connLingering
	c.rest = nil
	c.due = c.s.srv.sweeper.tick.Load() + c.s.srv.sweeper.linger
}

// close closes a connection, which waits for no turn any more.
func (l *loop) close(c *loopConn) {
	c.s.end()
	l.turns.quit(&c.place)
	c.state = connClosed
	c.rest = nil
	if c.s.buf != nil {
		c.s.returnBuffer()
	}
	l.conns[c.fd] = nil
	unix.Close(c.fd)
	l.open--
	if c.refused {
		l.srv.refusing.Add(-1)
	} else {
		l.srv.counters.open.Add(-1)
	}
}
