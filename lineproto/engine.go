package lineproto

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// engine serves the connections of one listener. An event loop serves those that it can,
// if the engine has one. Each other connection has a goroutine.
type engine struct {
	srv  *Server
	loop *loop // nil where goroutines serve all connections

	// draining is set before connections are told to end.
	draining atomic.Bool
	// stopWaits is closed when connections must no longer wait for sequences.
	stopWaits chan struct{}
	cut       atomic.Int64 // connections that draining has cut

	wg    sync.WaitGroup // goroutines of connections, and of the loop
	mu    sync.Mutex     // guards conns and idle
	conns map[*conn]struct{}
	idle  []int64 // the dues of connections of the loop that may have to make room
}

func newEngine(s *Server) *engine {
	return &engine{srv: s, stopWaits: make(chan struct{}), conns: make(map[*conn]struct{})}
}

// start runs f for a new connection in a goroutine, and closes the connection when f
// returns. The client has due ticks for its first request.
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

// each calls f with every connection that has a goroutine. f must not block, as mu is
// held.
func (e *engine) each(f func(c *conn)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.conns {
		f(c)
	}
}

// A deadline of longAgo interrupts reads and writes that are under way. noDeadline
// removes it.
var longAgo, noDeadline = time.Unix(1, 0), time.Time{}

// drain ends all connections. accept must have returned before. Requests may wait for a
// sequence during half of DrainTimeout. Before drain cuts connections it calls cancel, which
// ends Backend calls.
func (e *engine) drain(cancel context.CancelFunc) {
	ended := make(chan struct{})
	go func() { e.wg.Wait(); close(ended) }()
	e.draining.Store(true)
	e.loop.drainTo(draining)
	began, whole := time.Now(), e.srv.cfg.DrainTimeout
	for _, next := range []struct {
		after time.Duration
		stage stage
		do    func() // for connections with goroutines
	}{
		{min(drainGrace, whole/2), ending, func() {
			e.each(func(c *conn) { c.nc.SetReadDeadline(longAgo) })
		}},
		{whole / 2, waitless, func() { close(e.stopWaits) }},
		{whole, cutting, func() {
			cancel()
			e.each(func(c *conn) { e.cut.Add(1); socket(c.nc).Close() })
		}},
	} {
		select {
		case <-ended:
			return
		case <-time.After(time.Until(began.Add(next.after))):
		}
		next.do()
		e.loop.drainTo(next.stage)
	}
	<-ended
}

// stage is the progress of draining, as a loop knows it.
type stage uint8

const (
	serving  stage = iota
	draining       // the loop ends with its last connection
	ending         // connections end once they are answered
	waitless       // connections no longer wait for sequences
	cutting        // connections end at once
)
