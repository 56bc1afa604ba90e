package lineproto

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
)

// maxEvents is the most events that a loop receives from epoll at once.
const maxEvents = 128

// driver is a goroutine that runs a loop, and the buffers of that goroutine. A
// connection has a buffer of its own only while input or output is left over.
type driver struct {
	l     *loop
	in    []byte
	spare *[]byte // for output
	// woke is when epoll last returned events, in ns of Server.elapsed.
	woke int64
	// worked is the work of the last turn, in the units of roundOfWork.
	worked int

	// unmeasured counts the requests that were answered in this round and not measured.
	// answered counts the connections of this round that had requests answered.
	unmeasured, answered int64
	times                times
	events               []unix.EpollEvent
}

func newDriver(l *loop) *driver {
	return &driver{l: l, in: make([]byte, loopBuf), events: make([]unix.EpollEvent, maxEvents)}
}

// run serves the loop until draining has ended its last connection. It returns earlier
// if a call took so long that another driver has the loop.
func (d *driver) run(ctx context.Context) {
	l := d.l
	defer d.measure()
	d.open(l.collect()) // the last driver may have seen the event and left the mail
	for l.stage == serving || l.open > 0 {
		d.measure()
		n := d.wait()
		if l.e.srv.cfg.Measure {
			d.woke = l.e.srv.elapsed()
		}
		for _, ev := range d.events[:n] {
			if int(ev.Fd) == l.wakefd {
				d.open(l.collect())
				continue
			}
			// An earlier event of this round may have closed the connection, and
			// another one may have its descriptor.
			if c := l.conns[ev.Fd]; c != nil && c.gen == ev.Pad && !d.ready(ctx, c, ev.Events) {
				return
			}
		}
		d.sweep()
		if !d.giveTurns(ctx) {
			return
		}
	}
}

const (
	// roundOfWork is how much work a loop does for its queue before it polls for
	// events. The unit is one reserved ID. 16 bytes of output count as one unit, and
	// a turn counts as 64 units at least.
	roundOfWork = roundOfIDs
	leastWork   = 64
	bytesOfWork = 16
)

// giveTurns gives turns to connections in the queue. It stops after a round of work, or
// when a tick has run out and the next turn would wait. It returns false if this driver
// has lost the loop.
func (d *driver) giveTurns(ctx context.Context) bool {
	l := d.l
	l.taken = 0
	//mutant:w-round by TestLoopPollsAfterOneRoundOfWork -> for left := 100 * roundOfWork; left > 0; {
	for left := roundOfWork; left > 0; {
		waiting := l.queue.waiting(numRanks)
		p, ok := l.queue.next(l.serves())
		if !ok {
			return true
		}
		c := p.owner
		c.large = c.s.rank() >= large
		may := slice(c.s.order.lacks(), waiting, l.queue.scarce)
		if !d.answer(ctx, c, c.rest, may) {
			return false
		}
		if left -= max(d.worked, leastWork); c.s.ranOut {
			return true
		}
	}
	return true
}

// wait returns the number of events in d.events. It polls before it blocks: under load
// there mostly is an event, and a call that may block makes Go's scheduler do work. It
// does not block while connections wait for their turn or a sweep is unfinished.
func (d *driver) wait() int {
	l := d.l
	n := rawsocket.Poll(l.epfd, d.events)
	if n > 0 || l.queue.waiting(l.serves()) > 0 || l.swept < len(l.conns) {
		return n
	}
	return rawsocket.Wait(l.epfd, d.events, -1)
}

// open executes what the mail asks for.
func (d *driver) open(m mail) {
	l := d.l
	for _, c := range m.arrived {
		if c.state == connAway {
			l.away.Add(-1)
			d.returned(c)
		} else {
			d.adopt(c)
		}
	}
	for _, c := range m.woken {
		if c.state == connSleeping && c.s.awake() {
			d.goOn(c)
		}
	}
	if m.stopWaits {
		l.waitsStopped = true
		d.wakeAll()
	}
	if m.sweep {
		l.swept = 0
	}
	if m.stage > l.stage {
		l.stage = m.stage
		d.drain()
	}
}

// adopt begins to serve a connection.
func (d *driver) adopt(c *loopConn) {
	l := d.l
	l.gen++
	c.gen = l.gen
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
	l.open++
	if !d.register(c) {
		return
	}
	if c.refused {
		d.lend(c)
		c.s.out = l.e.srv.busy(c.s.out)
		d.deliver(c, nil, finished)
	}
}

func (d *driver) register(c *loopConn) bool {
	c.want = awaitInput
	if err := d.l.control(unix.EPOLL_CTL_ADD, c.fd, c.want, c.gen); err != nil {
		d.l.e.srv.cfg.Logger.Warn("failed to add a connection to epoll", "error", os.NewSyscallError("epoll_ctl", err))
		d.close(c)
		return false
	}
	return true
}

// returned goes on with a connection whose call took so long that it was away.
func (d *driver) returned(c *loopConn) {
	c.state = connReading
	if c == d.l.held {
		d.l.held = nil
	}
	if d.l.stage == cutting {
		d.close(c)
	} else if d.register(c) {
		d.deliver(c, c.rest, c.st)
	}
}
