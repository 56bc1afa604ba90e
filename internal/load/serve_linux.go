package load

import (
	"context"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/rawsocket"
)

func (p *poller) serve(ctx context.Context) {
	defer p.close()
	dialing, stop := context.WithCancel(ctx)
	p.ctx = dialing
	l := p.lane
	if l.cfg.Rate == 0 {
		for i := range l.conns {
			p.send(i, l.now())
		}
	}
	for !p.done() {
		next := p.sendDue()
		for i := range p.events[:p.wait(next)] {
			p.handle(&p.events[i])
		}
		l.flush()
		p.look()
	}
	stop()
	p.dials.Wait()
	for _, r := range p.inbox {
		if r.conn != nil {
			_ = r.conn.Close()
		}
	}
	now := l.now()
	for i, c := range l.conns {
		if p.fds[i] < 0 {
			c.open()
		}
		c.abandon(now)
	}
}

// done reports whether the time of the run is over and all requests are answered, or
// the grace has passed as well.
func (p *poller) done() bool {
	l := p.lane
	now, until := l.now(), l.until.Load()
	if now < until {
		return false
	}
	if now >= until+l.grace.Load() {
		return true
	}
	for i, c := range l.conns {
		if p.fds[i] >= 0 && c.owes() {
			return false
		}
	}
	return true
}

// sendDue sends the requests that are due in an open loop. It returns when it must be
// called again, in ns since base.
func (p *poller) sendDue() int64 {
	l := p.lane
	if l.cfg.Rate == 0 {
		return math.MaxInt64
	}
	n, until := int64(len(l.conns)), l.until.Load()
	now := l.now()
	for {
		due := l.due(p.turn)
		if due >= until {
			return math.MaxInt64
		}
		if due > now {
			return due
		}
		p.send(int(p.turn%n), now)
		p.turn++
		now = l.now()
	}
}

// lookEvery is the time between two looks for timeouts.
const lookEvery = 20 * time.Millisecond

// wait returns the number of events. It blocks no longer than until next, the next look
// for timeouts, or the end of the run.
func (p *poller) wait(next int64) int {
	n := rawsocket.Poll(p.epoll, p.events)
	if n > 0 {
		return n
	}
	l := p.lane
	now := l.now()
	for spun := now + int64(l.cfg.Spin); l.cfg.Spin > 0 && now < min(spun, next); now = l.now() {
		if n := rawsocket.Poll(p.epoll, p.events); n > 0 {
			return n
		}
	}
	wake := min(next, p.looked+int64(lookEvery))
	if until := l.until.Load(); now < until {
		wake = min(wake, until)
	}
	// The kernel counts in milliseconds and is a little late: the last millisecond is
	// spent polling.
	ms := (wake - now) / int64(time.Millisecond)
	if next > wake {
		ms++
	}
	if ms <= 0 {
		return 0
	}
	return rawsocket.Wait(p.epoll, p.events, int(ms))
}

func (p *poller) handle(e *unix.EpollEvent) {
	if e.Fd == eventIndex {
		p.reopen()
		return
	}
	index := int(e.Fd)
	if p.fds[index] < 0 {
		return // an earlier event has lost it
	}
	if e.Events&^uint32(unix.EPOLLOUT) != 0 && !p.receive(index) {
		return
	}
	p.send(index, p.lane.now())
}

// receive reads once. It is called again if there is more. It returns false if the
// connection is lost.
func (p *poller) receive(index int) bool {
	c := p.lane.conns[index]
	if len(p.buf)-len(c.rest) < 128<<10 {
		p.buf = make([]byte, 2*len(p.buf))
	}
	had := copy(p.buf, c.rest)
	n, errno := rawsocket.Recv(p.fds[index], p.buf[had:])
	now := p.lane.now()
	switch {
	case errno == unix.EAGAIN:
		return true
	case errno != 0:
		p.lost(index, errno, now)
		return false
	case n == 0:
		p.lost(index, io.EOF, now)
		return false
	}
	if err := c.received(p.buf[:had+n], now); err != nil {
		p.lost(index, err, now)
		return false
	}
	return true
}

// send writes the requests that are due, as far as the socket accepts them.
func (p *poller) send(index int, now int64) {
	c, fd := p.lane.conns[index], p.fds[index]
	if fd < 0 {
		return
	}
	c.pump(now)
	for c.debt > 0 {
		b := c.chunk()
		n, errno := rawsocket.Send(fd, b)
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 {
			p.lost(index, errno, now)
			return
		}
		c.wrote(n)
	}
	if wants := c.debt > 0; wants != p.wants[index] {
		p.wants[index] = wants
		events := uint32(unix.EPOLLIN)
		if wants {
			events |= unix.EPOLLOUT
		}
		_ = p.control(unix.EPOLL_CTL_MOD, fd, index, events)
	}
}

// look drops connections that have waited too long for replies.
func (p *poller) look() {
	now := p.lane.now()
	since := now - p.looked
	if since < int64(lookEvery) {
		return
	}
	p.looked = now
	if since > int64(lookEvery+p.lane.cfg.Timeout/2) {
		return // this process was stopped: replies may have come meanwhile
	}
	for i, c := range p.lane.conns {
		if p.fds[i] >= 0 && c.late(now) {
			p.lost(i, os.ErrDeadlineExceeded, now)
		}
	}
}
