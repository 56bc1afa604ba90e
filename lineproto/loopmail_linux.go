package lineproto

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
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
	srv     *Server
	from    *listener // whose connections it serves
	epfd    int
	wakefd  int // an eventfd: there is mail
	timerfd int // the end of a pause

	conns   []*loopConn // by descriptor
	open    int         // open connections
	gen     int32       // of the connection adopted last
	swept   int         // descriptors that the sweep has looked at
	surplus *surplus    // of the sweep
	stage   stage       // of draining

	turns turns // of connections with more work than a turn
	// paused is set while no IDs can be made. waited is how long requests have waited for a
	// clock that went back, since the last ID.
	paused bool
	waited time.Duration
	// worked is the work of the last turn, in the units of roundOfWork.
	worked int

	// Buffers of the goroutine. A connection has a buffer of its own only while input or
	// output is left over.
	in     []byte
	events []unix.EpollEvent

	// woke is when epoll last returned events, in ns of Server.elapsed.
	woke int64

	mu     sync.Mutex // guards mail, woken and closed
	mail   mail
	woken  bool // wakefd was written to since the last collect
	closed bool // wakefd is closed
}

// mail holds what other goroutines ask of a loop.
type mail struct {
	arrived []*loopConn // new
	woken   []*loopConn // their sessions have been woken
	sweep   bool
	surplus *surplus
	stage   stage
}

// newLoop opens the descriptors of a loop.
func newLoop(from *listener) (*loop, error) {
	l := &loop{srv: from.srv, from: from, epfd: -1, wakefd: -1, timerfd: -1, in: make([]byte, loopBuf),
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

// start starts the loop. calls is the context of its Backend calls. The loop ends after drainTo.
func (l *loop) start(calls context.Context, wg *sync.WaitGroup) {
	if l != nil {
		wg.Go(func() { l.run(calls) })
	}
}

// take gives a connection to the loop. It returns false if the loop cannot serve the
// connection, for instance because it speaks TLS. due is the number of ticks for its first
// request. refused means that it is over MaxConns.
func (l *loop) take(nc net.Conn, due int64, refused bool) bool {
	if l == nil || !rawsocket.Is(nc) {
		return false
	}
	fd, err := rawsocket.Detach(nc)
	if err != nil {
		return false // perhaps no descriptor: a goroutine needs no second one
	}
	c := newLoopConn(l, fd, due, refused)
	l.post(func(m *mail) { m.arrived = append(m.arrived, c) })
	return true
}

func (l *loop) sweepSoon(room *surplus) { l.post(func(m *mail) { m.sweep, m.surplus = true, room }) }
func (l *loop) drainTo(s stage)         { l.post(func(m *mail) { m.stage = s }) }
