package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/rawsocket"
)

// loops returns an event loop for each lane, which takes over the lane's sockets. If
// any connection is not a plain socket, goroutines serve all of them.
func (r *run) loops(lanes []*lane, conns []net.Conn) ([]loop, error) {
	for _, c := range conns {
		if !rawsocket.Is(c) || r.cfg.goroutines {
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

// poller is an event loop over the connections of a lane.
type poller struct {
	lane  *lane
	epoll int
	event int   // an eventfd that wakes it
	fds   []int // by index of the connection, -1: lost
	// wants marks connections that wait until they can write again.
	wants  []bool
	events []unix.EpollEvent
	buf    []byte
	turn   int64 // the lane's next request of an open loop
	looked int64 // when look last checked
	ctx    context.Context
	dials  sync.WaitGroup

	mu    sync.Mutex // guards inbox
	inbox []redialed
}

// redialed is the result of redial: a new connection, or an error.
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
		return nil, fmt.Errorf("cannot create an event loop: %w", err)
	}
	return p, nil
}

func (p *poller) control(op, fd, index int, events uint32) error {
	return unix.EpollCtl(p.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(index)})
}

// adopt moves the socket of c from Go's poller to this loop. If it fails, it has closed
// the socket.
func (p *poller) adopt(index int, c net.Conn) error {
	fd, err := rawsocket.Detach(c)
	if err != nil {
		_ = c.Close()
		return fmt.Errorf("cannot take over a connection: %w", err)
	}
	if err := p.control(unix.EPOLL_CTL_ADD, fd, index, unix.EPOLLIN); err != nil {
		_ = unix.Close(fd)
		return err
	}
	p.fds[index], p.wants[index] = fd, false
	return nil
}

func (p *poller) wake() {
	_, _ = unix.Write(p.event, binary.NativeEndian.AppendUint64(nil, 1))
}

func (p *poller) close() {
	for _, fd := range append(p.fds, p.event, p.epoll) {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// lost closes a connection, and begins to open it again unless the run is over.
func (p *poller) lost(index int, err error, now int64) {
	c := p.lane.conns[index]
	c.lost(codeOf(err), now)
	_ = unix.Close(p.fds[index])
	p.fds[index] = -1
	c.open()
	if !p.lane.over() {
		p.redial(index)
	}
}

// redial opens a connection in a goroutine, after redialAfter. The loop goes on
// meanwhile.
func (p *poller) redial(index int) {
	p.dials.Go(func() {
		if !sleep(p.ctx, redialAfter) {
			return
		}
		c, err := dial(p.ctx, p.lane.cfg)
		p.mu.Lock()
		p.inbox = append(p.inbox, redialed{index, c, err})
		p.mu.Unlock()
		p.wake()
	})
}

// reopen handles the results of redial.
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
