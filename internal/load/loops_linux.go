package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loops takes the sockets over, a loop a lane. A connection that is more than a
// socket is served by goroutines, and so are then all of them.
func (r *run) loops(lanes []*lane, conns []net.Conn) ([]loop, error) {
	for _, c := range conns {
		if !isSocket(c) || r.cfg.goroutines {
			return clients(lanes, conns), nil
		}
	}
	var loops []loop
	for i, l := range lanes {
		p, err := newPoller(l)
		if err != nil {
			closeLoops(loops)
			return nil, err
		}
		loops = append(loops, p)
		for index := range l.conns {
			if err := p.adopt(index, conns[i+index*len(lanes)]); err != nil {
				closeLoops(loops)
				return nil, err
			}
		}
	}
	return loops, nil
}

func closeLoops(loops []loop) {
	for _, l := range loops {
		l.(*poller).close()
	}
}

func isSocket(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// poller is an event loop over the connections of a lane.
type poller struct {
	lane  *lane
	epoll int
	event int   // an eventfd that wakes it
	fds   []int // by index of the connection; -1: lost
	// wants is which connections wait until they may write again.
	wants  []bool
	events []unix.EpollEvent
	buf    []byte
	turn   int64 // the lane's next request of an open loop
	looked int64 // when timeouts were looked for
	ctx    context.Context
	dials  sync.WaitGroup

	mu    sync.Mutex // guards inbox
	inbox []redialed
}

// redialed is a lost connection opened again, or an attempt that failed.
type redialed struct {
	index int
	conn  net.Conn
	err   error
}

const eventIndex = -1 // stands for the eventfd

func newPoller(l *lane) (*poller, error) {
	p := &poller{
		lane: l, epoll: -1, event: -1, events: make([]unix.EpollEvent, 512),
		buf: make([]byte, 256<<10), wants: make([]bool, len(l.conns)), fds: make([]int, len(l.conns)),
	}
	for i := range p.fds {
		p.fds[i] = -1
	}
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
			err = p.control(unix.EPOLL_CTL_ADD, p.event, eventIndex, unix.EPOLLIN)
		}
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("load: an event loop: %w", err)
	}
	return p, nil
}

func (p *poller) control(op, fd, index int, events uint32) error {
	return unix.EpollCtl(p.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(index)})
}

// adopt takes the socket out of the runtime's hands into this loop's.
func (p *poller) adopt(index int, c net.Conn) error {
	defer c.Close()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(s uintptr) { fd, dupErr = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return err
	}
	if dupErr != nil {
		return fmt.Errorf("load: taking a connection over: %w", dupErr)
	}
	if err := p.control(unix.EPOLL_CTL_ADD, fd, index, unix.EPOLLIN); err != nil {
		_ = unix.Close(fd)
		return err
	}
	p.fds[index], p.wants[index] = fd, false
	return nil
}

func (p *poller) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.event, one[:])
}

func (p *poller) close() {
	for _, fd := range append(p.fds, p.event, p.epoll) {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

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

// done tells whether the end has come and all is answered, or waited for long
// enough.
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

// sendDue sends what is due in an open loop, and returns when it is to be called
// again.
func (p *poller) sendDue() int64 {
	l := p.lane
	if l.cfg.Rate == 0 {
		return math.MaxInt64
	}
	n, until := int64(len(l.conns)), l.until.Load()
	now := l.now()
	for {
		due := int64((l.offset + float64(p.turn)) * l.interval)
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

// lookEvery is how often timeouts are looked for.
const lookEvery = 20 * time.Millisecond

// wait returns how many events there are. It sleeps for no longer than until
// next, or until there is something else to look after.
func (p *poller) wait(next int64) int {
	n := p.poll()
	if n > 0 {
		return n
	}
	l := p.lane
	now := l.now()
	for spun := now + int64(l.cfg.Spin); l.cfg.Spin > 0 && now < min(spun, next); now = l.now() {
		if n := p.poll(); n > 0 {
			return n
		}
	}
	wake := min(next, p.looked+int64(lookEvery))
	if until := l.until.Load(); now < until {
		wake = min(wake, until)
	}
	// The kernel counts in milliseconds and is late by a little: the last one is
	// spent polling.
	ms := (wake - now) / int64(time.Millisecond)
	if next > wake {
		ms++
	}
	if ms <= 0 {
		return 0
	}
	n, err := unix.EpollWait(p.epoll, p.events, int(ms))
	if err != nil {
		return 0
	}
	return n
}

// poll asks for events without waiting, and without telling the scheduler: that
// costs more than the call.
func (p *poller) poll() int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

func (p *poller) handle(e *unix.EpollEvent) {
	if e.Fd == eventIndex {
		p.reopen()
		return
	}
	index := int(e.Fd)
	if p.fds[index] < 0 {
		return // lost by an event before this one
	}
	if e.Events&^uint32(unix.EPOLLOUT) != 0 && !p.receive(index) {
		return
	}
	p.send(index, p.lane.now())
}

// receive reads once; it is called again if there is more.
func (p *poller) receive(index int) bool {
	c := p.lane.conns[index]
	if len(p.buf)-len(c.rest) < 128<<10 {
		p.buf = make([]byte, 2*len(p.buf))
	}
	had := copy(p.buf, c.rest)
	room := p.buf[had:]
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(p.fds[index]),
		uintptr(unsafe.Pointer(&room[0])), uintptr(len(room)), unix.MSG_DONTWAIT, 0, 0)
	now := p.lane.now()
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return true
	case errno != 0:
		p.lost(index, errno, now)
		return false
	case n == 0:
		p.lost(index, io.EOF, now)
		return false
	}
	if err := c.received(p.buf[:had+int(n)], now); err != nil {
		p.lost(index, err, now)
		return false
	}
	return true
}

// send writes what is due and goes.
func (p *poller) send(index int, now int64) {
	c, fd := p.lane.conns[index], p.fds[index]
	if fd < 0 {
		return
	}
	c.pump(now)
	for c.debt > 0 {
		b := c.chunk()
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
			uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 && errno != unix.EINTR {
			p.lost(index, errno, now)
			return
		}
		if errno == 0 {
			c.wrote(int(n))
		}
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

// look finds connections that have waited for too long.
func (p *poller) look() {
	now := p.lane.now()
	since := now - p.looked
	if since < int64(lookEvery) {
		return
	}
	p.looked = now
	if since > int64(lookEvery+p.lane.cfg.Timeout/2) {
		return // this process was stopped: replies may be there that it has not read
	}
	for i, c := range p.lane.conns {
		if p.fds[i] >= 0 && c.late(now) {
			p.lost(i, errLate, now)
		}
	}
}

var errLate = errors.New("load: no reply in time")

// lost closes a connection, and has it opened again in a while.
func (p *poller) lost(index int, err error, now int64) {
	code := codeOf(err)
	if errors.Is(err, errLate) {
		code = codeTimeout
	}
	c := p.lane.conns[index]
	c.lost(code, now)
	_ = unix.Close(p.fds[index])
	p.fds[index] = -1
	c.open()
	if !p.lane.over() {
		p.redial(index)
	}
}

// redial has a connection opened while the loop goes on.
func (p *poller) redial(index int) {
	p.dials.Go(func() {
		pause := time.NewTimer(redialAfter)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-p.ctx.Done():
			return
		}
		c, err := dial(p.ctx, p.lane.cfg)
		p.mu.Lock()
		p.inbox = append(p.inbox, redialed{index, c, err})
		p.mu.Unlock()
		p.wake()
	})
}

// reopen takes in what redial has come to.
func (p *poller) reopen() {
	var count [8]byte
	_, _ = unix.Read(p.event, count[:])
	p.mu.Lock()
	inbox := p.inbox
	p.inbox = nil
	p.mu.Unlock()
	l := p.lane
	for _, r := range inbox {
		err := r.err
		if err == nil {
			err = p.adopt(r.index, r.conn)
		}
		switch {
		case err == nil:
			p.send(r.index, l.now())
		case !l.over():
			l.tally.errors[codeConnect]++
			l.seenErrors.Add(1)
			p.redial(r.index)
		}
	}
}
