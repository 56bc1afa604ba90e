package lineproto

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
	"github.com/flaked/flaked/worker"
)

// run serves the loop until draining has ended its last connection.
func (l *loop) run(ctx context.Context) {
	for l.stage == serving || l.open > 0 {
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
	// roundOfWork is how much work a loop does for its queue before it polls for
	// events. The unit is one reserved ID. 16 bytes of output count as one unit, and
	// a turn counts as 64 units at least.
	roundOfWork = roundOfIDs
	leastWork   = 64
	bytesOfWork = 16
)

// giveTurns gives turns to connections in the queue. It stops after a round of work.
func (l *loop) giveTurns(ctx context.Context) {
	for left := roundOfWork; left > 0; {
		p := l.turns.next(l.serves())
		if p == nil {
			if !l.paused {
				l.waited = 0 // nobody waits for the clock any more
			}
			return
		}
		c := p.owner.(*loopConn)
		l.answer(ctx, c, c.rest, p.may)
		l.turns.done(p, c.s.took, l.paused)
		left -= max(l.worked, leastWork)
	}
}

// serves returns the first rank that gets no turns: that of orders for IDs, while there are none.
func (l *loop) serves() rank {
	if l.paused {
		return tiny
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
	if n > 0 || l.turns.waiting(l.serves()) > 0 || l.swept < len(l.conns) {
		return n
	}
	return rawsocket.Wait(l.epfd, l.events, -1)
}

// obey executes what the mail asks for.
func (l *loop) obey(m mail) {
	for _, c := range m.arrived {
		l.adopt(c)
	}
	for _, c := range m.woken {
		if c.state == connSleeping && c.s.awake() {
			l.goOn(c)
		}
	}
	if m.sweep {
		l.beginSweep(m.surplus)
	}
	if m.stage > l.stage {
		l.stage = m.stage
		l.drain()
	}
}

// adopt begins to serve a connection.
func (l *loop) adopt(c *loopConn) {
	l.gen++
	c.gen = l.gen
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
	l.open++
	c.want = awaitInput
	if err := l.control(unix.EPOLL_CTL_ADD, c.fd, c.want, c.gen); err != nil {
		l.srv.cfg.Logger.Warn("failed to add a connection to epoll", "error", os.NewSyscallError("epoll_ctl", err))
		l.close(c)
		return
	}
	if c.refused {
		c.s.lend()
		c.s.out = l.srv.busy(c.s.out)
		l.deliver(c, nil, finished)
	}
}
