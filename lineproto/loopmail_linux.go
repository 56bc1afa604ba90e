package lineproto

import (
	"encoding/binary"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
)

// What other goroutines ask of a loop: to serve a connection, to wake one, to sweep and to drain.

// mail holds what other goroutines ask of a loop.
type mail struct {
	arrived []*loopConn // new
	woken   []*loopConn // their sessions have been woken
	sweep   bool
	toEnd   *surplus
	stage   stage
}

// newLoop opens the descriptors of a loop.
func newLoop(of *listener) (*loop, error) {
	l := &loop{srv: of.srv, listener: of, epfd: -1, wakefd: -1, timerfd: -1, in: make([]byte, loopBuf),
		events: make([]unix.EpollEvent, maxEvents)}
	if err := l.openFiles(); err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

func (l *loop) openFiles() (err error) {
	if l.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if l.wakefd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	l.timerfd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return err
	}
	// Edge-triggered, so neither need be read.
	for _, fd := range []int{l.wakefd, l.timerfd} {
		if err := l.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLET, 0); err != nil {
			return err
		}
	}
	return nil
}

// free closes the descriptors of the loop. Mail that comes later is thrown away: another
// file may get the number of wakefd.
func (l *loop) free() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, fd := range []int{l.epfd, l.wakefd, l.timerfd} {
		unix.Close(fd)
	}
}

func (l *loop) control(op, fd int, events uint32, gen int32) error {
	return unix.EpollCtl(l.epfd, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: gen})
}

// oneWake is what a wake adds to the counter of wakefd: 1, in the byte order of the processor.
// In the other order it would be 2^56, which fills the counter after 255 wakes. The kernel
// refuses further wakes then.
var oneWake = binary.NativeEndian.AppendUint64(nil, 1)

// post adds to the mail and wakes the loop.
func (l *loop) post(add func(m *mail)) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	add(&l.mail)
	if !l.woken {
		l.woken = true
		unix.Write(l.wakefd, oneWake)
	}
}

func (l *loop) collect() mail {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.mail
	l.mail, l.woken = mail{}, false
	return m
}

// take gives a connection to the loop. It returns false if the loop cannot serve the
// connection, for instance because it speaks TLS. ticks is the time for its first
// request. refused means that it is over MaxConns.
func (l *loop) take(nc net.Conn, ticks int64, refused bool) bool {
	if l == nil || !rawsocket.Is(nc) {
		return false
	}
	fd, err := rawsocket.Detach(nc)
	if err != nil {
		return false // perhaps no descriptor: a goroutine needs no second one
	}
	c := newLoopConn(l, fd, ticks, refused)
	l.post(func(m *mail) { m.arrived = append(m.arrived, c) })
	return true
}

func (l *loop) sweepSoon(toEnd *surplus) { l.post(func(m *mail) { m.sweep, m.toEnd = true, toEnd }) }
func (l *loop) drainTo(s stage)          { l.post(func(m *mail) { m.stage = s }) }

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
		l.beginSweep(m.toEnd)
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
		c.s.takeBuffer()
		c.s.out = l.srv.busyReply(c.s.out)
		l.deliver(c, nil, finished)
	}
}
