package lineproto

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
)

// loop serves many connections from one goroutine. epoll reports which connections have
// sent something, and each of them gets one recv and one send. A core answers 1.5 times
// as many requests as with a goroutine for each connection.
//
// That goroutine is the loop's driver. Fields that are neither atomic nor guarded by mu
// belong to the driver. A Backend call that takes long blocks its driver, and the loop
// gets another one: see watch.
//
// An engine without a loop has a nil loop. The methods that an engine calls do nothing then.
type loop struct {
	e      *engine
	epfd   int
	wakefd int // an eventfd: there is mail

	conns []*loopConn      // by descriptor
	open  int              // open connections, those away too
	gen   int32            // of the connection adopted last
	queue turns[*loopConn] // connections with more work than a turn
	// held is a connection that is away with a large order. Other large orders wait for
	// it.
	held *loopConn
	// taken is how many IDs requests have got in this round when they were read.
	taken int
	swept int   // descriptors that the sweep has looked at
	stage stage // of draining
	cut   int   // connections that draining has cut
	// waitsStopped is set when connections must no longer wait for sequences.
	waitsStopped bool

	// turn is odd while the driver is in a call for current that may take long. The
	// goroutine whose compare-and-swap then increments turn owns the loop. It is the
	// driver, or the watcher if the driver is late.
	turn    atomic.Uint64
	current *loopConn

	away atomic.Int64 // connections in state connAway
	load atomic.Int64 // connections, those in mail too

	// asleep is set while the watcher waits for wakeWatcher.
	asleep      atomic.Bool
	wakeWatcher chan struct{}

	mu     sync.Mutex // guards mail, woken and closed
	mail   mail
	woken  bool // wakefd was written to since the last collect
	closed bool // wakefd is closed
}

// mail holds what other goroutines ask of a loop.
type mail struct {
	arrived []*loopConn // new, or back from being away
	woken   []*loopConn // their sessions have been woken
	sweep   bool
	stage   stage
	// stopWaits demands that no connection waits for a sequence from now on.
	stopWaits bool
}

// newLoop opens the descriptors of a loop.
func newLoop(e *engine) (*loop, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epfd)
		return nil, err
	}
	l := &loop{e: e, epfd: epfd, wakefd: wakefd, wakeWatcher: make(chan struct{}, 1)}
	// Edge-triggered, so wakefd need not be read.
	if err := l.control(unix.EPOLL_CTL_ADD, wakefd, unix.EPOLLIN|unix.EPOLLET, 0); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// close closes the descriptors of the loop. Mail that comes later is thrown away: another
// file may get the number of wakefd.
func (l *loop) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	unix.Close(l.epfd)
	unix.Close(l.wakefd)
}

func (l *loop) control(op, fd int, events uint32, gen int32) error {
	return unix.EpollCtl(l.epfd, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: gen})
}

// oneWake is what a wake adds to the counter of wakefd: 1, in the byte order of the processor.
// In the other order it would be 2^56, which fills the counter after 255 wakes. The kernel
// refuses further wakes then.
var oneWake = binary.NativeEndian.AppendUint64(nil, 1)

// post adds to the mail and wakes the driver.
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

// run starts the driver. calls is the context of its Backend calls. The driver ends after drain.
func (l *loop) run(calls context.Context, wg *sync.WaitGroup) {
	if l != nil {
		wg.Go(func() { newDriver(l).run(calls) })
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
	l.load.Add(1)
	l.e.noteArrival()
	c := newLoopConn(l, fd, due, refused)
	l.post(func(m *mail) { m.arrived = append(m.arrived, c) })
	return true
}

// deserted reports whether there are no connections.
func (l *loop) deserted() bool { return l == nil || l.load.Load() == 0 }

func (l *loop) sweep() {
	if !l.deserted() {
		l.post(func(m *mail) { m.sweep = true })
	}
}

func (l *loop) drain(s stage) { l.post(func(m *mail) { m.stage = s }) }
func (l *loop) stopWaits()    { l.post(func(m *mail) { m.stopWaits = true }) }

// wasCut returns how many connections draining has cut. The driver must have ended.
func (l *loop) wasCut() int {
	if l == nil {
		return 0
	}
	return l.cut
}
