package lineproto

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// After a transient error of Accept, such as no free descriptor, the wait before
	// the next try doubles from acceptBackoffMin to acceptBackoffMax.
	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second

	// maxRefusing bounds the connections over MaxConns that are being told BUSY. Further
	// ones are closed without a reply.
	maxRefusing = 256
)

// keepAlive detects a peer that vanished within two minutes. Go's default, a probe
// every 15 seconds, is too often for connections that are idle by design.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}

// listener accepts connections for a Server, and ends them when Serve ends. An event loop serves those that it can, if
// the listener has one. Each other connection has a goroutine.
type listener struct {
	srv  *Server
	loop *loop // nil where goroutines serve all connections

	// draining is set before connections are told to end.
	draining atomic.Bool
	// stopWaits is closed when connections must no longer wait for sequences.
	stopWaits chan struct{}
	cut       atomic.Int64 // connections that draining has cut

	wg       sync.WaitGroup // goroutines of connections, and of the loop
	idle     []int64        // as the loop reported: the dues of its connections that may have to make room
	reported bool           // since the server is crowded. Server.mu guards both
}

func newListener(s *Server) *listener { return &listener{srv: s, stopWaits: make(chan struct{})} }

// openLoop makes the event loop of a listener, unless its connections need goroutines.
func (l *listener) openLoop(from net.Listener, log hclog.Logger) {
	_, isSocket := from.(syscall.Conn) // not for TLS
	if !isSocket || l.srv.cfg.Goroutines || runtime.GOOS != "linux" {
		return
	}
	var err error
	if l.loop, err = newLoop(l); err != nil {
		log.Warn("failed to create an event loop, serving with goroutines", "error", err)
	}
}

// accept starts connections until from fails or is closed, and returns that error. If ctx
// is done while accept waits for another try, it returns the error of ctx. calls is the
// context of Backend calls.
func (l *listener) accept(ctx, calls context.Context, from net.Listener, log hclog.Logger) error {
	var (
		backoff time.Duration
		refused int // in a row
		c       = &l.srv.counters
		limit   = int64(l.srv.cfg.MaxConns)
	)
	for {
		nc, err := from.Accept()
		if err != nil {
			if !isTransient(err) {
				return err
			}
			if backoff == 0 {
				log.Warn("failed to accept a connection, retrying", "error", err)
			}
			backoff = min(max(2*backoff, acceptBackoffMin), acceptBackoffMax)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(backoff):
				continue
			}
		}
		if backoff > 0 {
			backoff = 0
			log.Info("accepting connections again")
		}
		if t, ok := socket(nc).(*net.TCPConn); ok {
			t.SetKeepAliveConfig(keepAlive) // TCP_NODELAY is Go's default
			limitUnsent(t)
		}
		open := c.open.Add(1)
		if open == 1 {
			l.srv.sweeper.wake()
		}
		if open <= limit {
			if refused > 0 {
				log.Info("accepting connections below the limit again", "refused_conns", refused)
				refused = 0
			}
			l.admit(calls, nc)
			continue
		}
		c.refused.Add(1)
		if refused++; refused == 1 {
			log.Warn("refusing connections", "max_conns", limit)
		}
		l.refuse(nc)
		c.open.Add(-1) // after refuse has counted it, so that the sweep does not fall asleep between
	}
}

// admit begins to serve a connection.
func (l *listener) admit(calls context.Context, nc net.Conn) {
	c := &l.srv.counters
	c.total.Add(1)
	ticks := int64(unlimited)
	if l.srv.cfg.Authenticate != nil {
		ticks = l.srv.sweeper.auth
	}
	if l.srv.crowded() {
		ticks = min(ticks, l.srv.sweeper.firstByte)
	}
	if l.loop.take(nc, ticks, false) {
		runtime.Gosched() // while clients come one after the other, the loop goes first
		return
	}
	l.start(nc, ticks, func(cn *conn) {
		defer c.open.Add(-1)
		if cn.handshake(calls, ticks) {
			cn.serve(calls)
		}
	})
}

// refuse answers a connection over MaxConns with BUSY and closes it. accept does not
// wait for that.
func (l *listener) refuse(nc net.Conn) {
	refusing, ticks := &l.srv.refusing, l.srv.sweeper.linger
	if refusing.Add(1) > maxRefusing {
		refusing.Add(-1)
		nc.Close()
		return
	}
	if l.loop.take(nc, ticks, true) {
		return
	}
	l.start(nc, ticks, func(c *conn) {
		defer refusing.Add(-1)
		if _, err := nc.Write(l.srv.busyReply(nil)); err == nil {
			c.linger()
		}
	})
}

// start runs f for a new connection in a goroutine, and closes the connection when f
// returns. The client has this many ticks for its first request.
func (l *listener) start(nc net.Conn, ticks int64, f func(c *conn)) {
	c := newConn(l, nc)
	c.awaitFirst(ticks)
	l.srv.addConn(c)
	l.wg.Go(func() {
		f(c)
		l.srv.removeConn(c)
		socket(nc).Close()
	})
}

// isTransient reports whether an error of Accept may pass: no descriptor, no memory, or
// a client that disconnected in the queue.
func isTransient(err error) bool {
	transient := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	return slices.ContainsFunc(transient, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// each calls f with every connection of the listener that has a goroutine. f must not block, as Server.mu is held.
func (l *listener) each(f func(c *conn)) {
	l.srv.mu.Lock()
	defer l.srv.mu.Unlock()
	for c := range l.srv.conns {
		if c.l == l {
			f(c)
		}
	}
}

// drainGrace is how long connections are served as before when draining begins.
// Requests that the kernel holds are answered in this time. A close would throw them
// away and, because they are unread, the replies under way too.
const drainGrace = 10 * time.Millisecond

// A deadline of longAgo interrupts reads and writes that are under way. noDeadline
// removes it.
var longAgo, noDeadline = time.Unix(1, 0), time.Time{}

// drain ends all connections. accept must have returned before. Requests may wait for a
// sequence during half of DrainTimeout. Before drain cuts connections it calls cancel, which
// ends Backend calls.
func (l *listener) drain(cancel context.CancelFunc) {
	ended := make(chan struct{})
	go func() { l.wg.Wait(); close(ended) }()
	l.draining.Store(true)
	l.loop.drainTo(stageDraining)
	began, whole := time.Now(), l.srv.cfg.DrainTimeout
	for _, next := range []struct {
		after time.Duration
		stage stage
		do    func() // for connections with goroutines
	}{
		{min(drainGrace, whole/2), stageEnding, func() {
			l.each(func(c *conn) { c.nc.SetReadDeadline(longAgo) })
		}},
		{whole / 2, stageWaitless, func() { close(l.stopWaits) }},
		{whole, stageCutting, func() {
			cancel()
			l.each(func(c *conn) { l.cut.Add(1); socket(c.nc).Close() })
		}},
	} {
		select {
		case <-ended:
			return
		case <-time.After(time.Until(began.Add(next.after))):
		}
		next.do()
		l.loop.drainTo(next.stage)
	}
	<-ended
}

// stage is the progress of draining, as a loop knows it.
type stage uint8

const (
	stageServing  stage = iota
	stageDraining       // the loop ends with its last connection
	stageEnding         // connections end once they are answered
	stageWaitless       // connections no longer wait for sequences
	stageCutting        // connections end at once
)
