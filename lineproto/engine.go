package lineproto

import (
	"context"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/atomic"
)

// engine serves the connections of one listener: by event loops where it has
// some and they can, else by a goroutine for each.
type engine struct {
	srv   *Server
	loops loops

	// draining is set before connections are told to end.
	draining atomic.Bool
	// tick counts the sweeper's rounds: the clock that connections keep their
	// deadlines by, read for the price of a load.
	tick  atomic.Int64
	every time.Duration // between ticks
	// How many ticks a connection has for what it does.
	idle, firstByte, auth, write, linger int64

	refusing atomic.Int64 // connections being told BUSY

	wg    sync.WaitGroup // a connection's goroutine each, and the loops' drivers
	mu    sync.Mutex     // guards conns
	conns map[*conn]struct{}
}

// lingerTime is how long a connection that the server ends is read on, so
// that the client gets to see the last reply.
const lingerTime = time.Second

func newEngine(s *Server) *engine {
	c := &s.cfg
	// A tenth of the shortest timeout, so that none is late by more than a fifth.
	every := min(c.IdleTimeout, c.FirstByteTimeout, c.AuthTimeout, c.WriteTimeout, lingerTime*5) / 10
	e := &engine{srv: s, every: every, conns: make(map[*conn]struct{})}
	e.idle, e.firstByte = e.ticks(c.IdleTimeout), e.ticks(c.FirstByteTimeout)
	e.auth, e.write, e.linger = e.ticks(c.AuthTimeout), e.ticks(c.WriteTimeout), e.ticks(lingerTime)
	return e
}

// ticks is the least number of ticks that certainly last d, wherever between
// two ticks it begins: sweep sees to it that none is shorter than every.
func (e *engine) ticks(d time.Duration) int64 {
	return int64((d+e.every-1)/e.every) + 1
}

// start runs f for a new connection in its own goroutine.
func (e *engine) start(nc net.Conn, due int64, f func(c *conn)) {
	c := newConn(e, nc)
	c.begin(due)
	e.mu.Lock()
	e.conns[c] = struct{}{}
	e.mu.Unlock()
	e.wg.Go(func() {
		f(c)
		e.mu.Lock()
		delete(e.conns, c)
		e.mu.Unlock()
		socket(nc).Close()
	})
}

// each calls f, which must not wait, with every connection.
func (e *engine) each(f func(c *conn)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.conns {
		f(c)
	}
}

// longAgo as a deadline interrupts reads or writes that are under way,
// noDeadline takes it back.
var longAgo, noDeadline = time.Unix(1, 0), time.Time{}

// sweep interrupts connections that are past their due time, until stop. One
// timer in place of one for each connection, set anew for each request: and as
// it is ticks that count, a process that was stopped for a while does not come
// back to find all of its connections overdue.
func (e *engine) sweep(stop <-chan struct{}) {
	t := time.NewTimer(e.every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		now := e.tick.Inc()
		// After the count: a ticker would make up for a late tick by a short one.
		t.Reset(e.every)
		e.loops.sweep()
		e.each(func(c *conn) {
			if now >= c.due.Load() {
				c.nc.SetDeadline(longAgo)
			}
		})
	}
}

// drain ends all connections; there are no new ones. It returns how many had
// to be cut, after calling cancel, which ends the Backend calls.
func (e *engine) drain(cancel context.CancelFunc) (cut int) {
	ended := make(chan struct{})
	go func() { e.wg.Wait(); close(ended) }()
	limit := time.NewTimer(e.srv.cfg.DrainTimeout)
	defer limit.Stop()
	grace := time.NewTimer(min(drainGrace, e.srv.cfg.DrainTimeout/2))
	defer grace.Stop()

	e.draining.Store(true)
	e.loops.drain(draining)
	select {
	case <-ended:
		return 0
	case <-grace.C:
	}
	e.each(func(c *conn) { c.nc.SetReadDeadline(longAgo) })
	e.loops.drain(ending)
	select {
	case <-ended:
		return 0
	case <-limit.C:
	}
	cancel()
	e.each(func(c *conn) { cut++; socket(c.nc).Close() })
	e.loops.drain(cutting)
	<-ended
	return cut + e.loops.cut()
}

// stage is how far draining has come, for the loops.
type stage uint8

const (
	serving  stage = iota
	draining       // a loop ends with its last connection
	ending         // connections are ended when they have been answered
	cutting        // and at once
)

// failed is a status of consume below: nothing is to be sent.
const failed = finished + 1

// consume is the session's, but that a panic in it ends no more than the
// connection.
func (e *engine) consume(ctx context.Context, s *session, in []byte, eof bool, may int) (used int, st status) {
	defer func() {
		if p := recover(); p != nil {
			e.srv.cfg.Logger.Error("a request panicked, its connection is closed", "panic", p, "stack", string(debug.Stack()))
			used, st = len(in), failed
		}
	}()
	return s.consume(ctx, in, eof, may)
}
