package lineproto

import (
	"context"
	"net"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/rawsocket"
)

// loop serves many connections from one goroutine: epoll says which have sent
// something, and each of those gets one recv and one send. That is half as
// much again as goroutines of their own get out of a core.
//
// The goroutine is the loop's driver. What is neither atomic nor guarded by mu
// is the driver's alone. A Backend call that takes long keeps its driver, and
// the loop is given another: see watch.
type loop struct {
	e      *engine
	epfd   int
	wakefd int // an eventfd: there is mail

	conns []*loopConn      // by descriptor
	open  int              // how many, those that are away too
	gen   int32            // of the connection adopted last
	queue turns[*loopConn] // of those that have more to do than one turn
	held  *loopConn        // is away with a large order: the others wait for it
	taken int              // IDs that requests got when they were read, in this round
	swept int              // descriptors that the present sweep has looked at
	stage stage            // of draining
	cut   int              // connections that draining has cut

	// turn is odd while the driver is in a call that may take long, for the
	// sake of current. Who counts it up from there has the loop: the driver, or
	// if that is late the watcher.
	turn    atomic.Uint64
	current *loopConn

	away atomic.Int64 // connections that have kept a driver
	load atomic.Int64 // connections, with those in the mail

	rung atomic.Bool // wakefd was written to since the mail was collected
	mu   sync.Mutex  // guards mail
	mail mail
}

// mail is what others want of a loop.
type mail struct {
	arrived []*loopConn // new ones, and those that were away
	sweep   bool
	stage   stage
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
	// By its edges: it need not be read.
	if err := l.control(unix.EPOLL_CTL_ADD, wakefd, unix.EPOLLIN|unix.EPOLLET, 0); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *loop) close() {
	unix.Close(l.epfd)
	unix.Close(l.wakefd)
}

func (l *loop) control(op, fd int, events uint32, gen int32) error {
	return unix.EpollCtl(l.epfd, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: gen})
}

// post adds to the mail and wakes the driver.
func (l *loop) post(add func(m *mail)) {
	l.mu.Lock()
	add(&l.mail)
	l.mu.Unlock()
	if !l.rung.Swap(true) {
		unix.Write(l.wakefd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (l *loop) collect() mail {
	l.rung.Store(false) // before looking: what comes after rings again
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.mail
	l.mail = mail{}
	return m
}

// loops are an engine's event loops; none is a working value.
type loops struct {
	all []*loop

	// asleep is set while the watcher waits for rouse.
	asleep atomic.Bool
	rouse  chan struct{}
}

// open makes n loops.
func (ls *loops) open(e *engine, n int) error {
	for range n {
		l, err := newLoop(e)
		if err != nil {
			ls.close()
			return err
		}
		ls.all = append(ls.all, l)
	}
	ls.rouse = make(chan struct{}, 1)
	return nil
}

// close is for when nothing posts mail any more: another file may get the
// descriptor's number.
func (ls *loops) close() {
	for _, l := range ls.all {
		l.close()
	}
	ls.all = nil
}

// run starts the drivers, which calls is the context of Backend calls for.
// They end by drain.
func (ls *loops) run(calls context.Context, wg *sync.WaitGroup) {
	for _, l := range ls.all {
		wg.Go(func() { newDriver(l).run(calls) })
	}
}

// take gives a connection to the loop with the fewest, if a loop can serve it:
// TLS is not for them.
func (ls *loops) take(nc net.Conn, due int64, refused bool) bool {
	if len(ls.all) == 0 || !rawsocket.Is(nc) {
		return false
	}
	fd, err := rawsocket.Detach(nc)
	if err != nil {
		return false // no descriptor left, say: a goroutine needs no second one
	}
	best := ls.all[0]
	for _, l := range ls.all[1:] {
		if l.load.Load() < best.load.Load() {
			best = l
		}
	}
	best.load.Inc()
	c := newLoopConn(best, fd, due, refused)
	best.post(func(m *mail) { m.arrived = append(m.arrived, c) })
	return true
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

// cut is how many connections draining has cut, once the drivers have ended.
func (ls *loops) cut() (n int) {
	for _, l := range ls.all {
		n += l.cut
	}
	return n
}

const (
	// A driver that is in the same call at two looks of the watcher has lost
	// its loop. The rollback rule's 5 ms and what is left of a millisecond that
	// has run out are for everybody on the loop to wait for alike.
	lookEvery = 6 * time.Millisecond
	// While calls do take long every other connection would wait for its turn
	// to be found waiting.
	lookOften = time.Millisecond
	// After so many looks without any call the watcher sleeps.
	looksIdle = 20
)

// watch gives loops whose driver is kept by a Backend new drivers, until stop.
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
			// A call that began before asleep was set did not rouse.
			if ls.quiet(seen) {
				select {
				case <-stop:
					return
				case <-ls.rouse:
				}
			} else if !ls.asleep.Swap(false) {
				<-ls.rouse
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
// connection that waits for one is away. While it has a large order, the others with
// large orders get no turns: of several that are away, the first to wake would take
// the whole tick.
func (l *loop) serves() rank {
	if l.held != nil {
		return large
	}
	return numRanks
}

// begun is called at the beginning of each call, after turn was made odd.
func (ls *loops) begun() {
	if ls.asleep.Load() && ls.asleep.Swap(false) {
		ls.rouse <- struct{}{}
	}
}

// relieve takes the loop from the driver that has been in a call since turn.
func (l *loop) relieve(turn uint64, calls context.Context, wg *sync.WaitGroup) {
	wg.Add(1) // before the driver can end: somebody waits for none to be left
	if !l.turn.CompareAndSwap(turn, turn+1) {
		wg.Done()
		return
	}
	c := l.current
	c.state = connAway
	if c.large {
		l.held = c
	}
	l.away.Inc()
	l.control(unix.EPOLL_CTL_DEL, c.fd, 0, 0) // HUP cannot be masked
	go func() {
		defer wg.Done()
		newDriver(l).run(calls)
	}()
}
