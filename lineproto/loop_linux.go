package lineproto

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

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
	l := &loop{e: e, epfd: epfd, wakefd: wakefd}
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

// loops are the event loops of an engine. The zero value has none and takes no
// connection.
type loops struct {
	all []*loop

	// asleep is set while the watcher waits for wakeWatcher.
	asleep      atomic.Bool
	wakeWatcher chan struct{}
}

// open makes the loop of a listener.
func (ls *loops) open(e *engine) error {
	l, err := newLoop(e)
	if err != nil {
		return err
	}
	ls.all = []*loop{l}
	ls.wakeWatcher = make(chan struct{}, 1)
	return nil
}

// close closes the descriptors of the loops.
func (ls *loops) close() {
	for _, l := range ls.all {
		l.close()
	}
	ls.all = nil
}

// run starts a driver for each loop. calls is the context of their Backend calls. The
// drivers end after drain.
func (ls *loops) run(calls context.Context, wg *sync.WaitGroup) {
	for _, l := range ls.all {
		wg.Go(func() { newDriver(l).run(calls) })
	}
}

// take gives a connection to the loop with the fewest connections. It returns false if
// no loop can serve the connection, for instance because it speaks TLS. due is the
// number of ticks for its first request. refused means that it is over MaxConns.
func (ls *loops) take(nc net.Conn, due int64, refused bool) bool {
	if len(ls.all) == 0 || !rawsocket.Is(nc) {
		return false
	}
	fd, err := rawsocket.Detach(nc)
	if err != nil {
		return false // perhaps no descriptor: a goroutine needs no second one
	}
	best := ls.all[0]
	for _, l := range ls.all[1:] {
		if l.load.Load() < best.load.Load() {
			best = l
		}
	}
	best.load.Add(1)
	best.e.noteArrival()
	c := newLoopConn(best, fd, due, refused)
	best.post(func(m *mail) { m.arrived = append(m.arrived, c) })
	return true
}

// load returns the number of connections.
func (ls *loops) load() (n int64) {
	for _, l := range ls.all {
		n += l.load.Load()
	}
	return n
}

func (ls *loops) sweep() {
	for _, l := range ls.all {
		if l.load.Load() > 0 {
			l.post(func(m *mail) { m.sweep = true })
		}
	}
}

func (ls *loops) drain(s stage) {
	for _, l := range ls.all {
		l.post(func(m *mail) { m.stage = s })
	}
}

func (ls *loops) stopWaits() {
	for _, l := range ls.all {
		l.post(func(m *mail) { m.stopWaits = true })
	}
}

// cut returns how many connections draining has cut. The drivers must have ended.
func (ls *loops) cut() (n int) {
	for _, l := range ls.all {
		n += l.cut
	}
	return n
}

const (
	// lookEvery is the time between two looks of the watcher. A driver that is in the
	// same call at two looks loses its loop. Shorter waits hold up all connections of
	// the loop: the 5 ms of the rollback rule, and the rest of a tick of a millisecond.
	lookEvery = 6 * time.Millisecond
	// lookOften is the time between two looks while a connection is away. Calls then
	// take long, and each would hold up the others for lookEvery.
	lookOften = time.Millisecond
	// The watcher sleeps after more than looksIdle looks without any call.
	looksIdle = 20
)

// watch gives a new driver to each loop whose driver is blocked by a Backend call,
// until stop is closed.
func (ls *loops) watch(stop <-chan struct{}, calls context.Context, wg *sync.WaitGroup) {
	if len(ls.all) == 0 {
		return
	}
	seen := make([]uint64, len(ls.all))
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for idle := 0; ; {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		next := lookEvery
		idle++
		for i, l := range ls.all {
			turn := l.turn.Load()
			if turn != seen[i] {
				idle = 0
			} else if turn&1 != 0 {
				idle = 0
				l.relieve(turn, calls, wg)
			}
			seen[i] = turn
			if l.away.Load() > 0 {
				next = lookOften
			}
		}
		if idle > looksIdle {
			ls.asleep.Store(true)
			// A call that began before asleep was set did not wake the watcher.
			if ls.quiet(seen) {
				select {
				case <-stop:
					return
				case <-ls.wakeWatcher:
				}
			} else if !ls.asleep.Swap(false) {
				<-ls.wakeWatcher
			}
			idle = 0
		}
		timer.Reset(next)
	}
}

func (ls *loops) quiet(seen []uint64) bool {
	for i, l := range ls.all {
		if l.turn.Load() != seen[i] {
			return false
		}
	}
	return true
}

// serves returns the first rank that gets no turns. Where ticks are long, the
// connection that waits for one is away. If it has a large order, other large orders
// get no turns. Of several that are away, the first to wake would take the whole tick.
func (l *loop) serves() rank {
	if l.held != nil {
		return large
	}
	return numRanks
}

// begun wakes the watcher if it sleeps. The driver must call it at the beginning of
// each call, after it has made turn odd.
func (ls *loops) begun() {
	if ls.asleep.Load() && ls.asleep.Swap(false) {
		ls.wakeWatcher <- struct{}{}
	}
}

// relieve takes the loop from a driver that is still in the call that turn stands for,
// and starts another driver.
func (l *loop) relieve(turn uint64, calls context.Context, wg *sync.WaitGroup) {
	wg.Add(1) // before the driver can end: drain waits for wg to be zero
	if !l.turn.CompareAndSwap(turn, turn+1) {
		wg.Done()
		return
	}
	c := l.current
	c.state = connAway
	if c.large {
		l.held = c
	}
	l.away.Add(1)
	l.control(unix.EPOLL_CTL_DEL, c.fd, 0, 0) // HUP cannot be masked
	go func() {
		defer wg.Done()
		newDriver(l).run(calls)
	}()
}
