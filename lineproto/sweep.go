package lineproto

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// sweeper ends the connections of all listeners of a Server that are past a time limit, and idle ones that must make
// room. One timer serves all connections, so no request sets one.
//
// It counts ticks, and connections keep their deadlines in ticks: reading the tick is one atomic load. A process
// that was stopped for a while does not find all of its connections overdue.
type sweeper struct {
	tick  atomic.Int64
	every time.Duration // between ticks
	// Time limits of connections, in ticks. idle is the least time after which an idle one must make room.
	idle, firstByte, auth, write, linger int64

	firstConn chan struct{} // capacity 1: there is a connection again, and the sweep must go on
}

// lingerTime is how long the server goes on reading from a connection that it ends, so
// that the client receives the last reply.
const lingerTime = time.Second

// configure sets the time limits of a Config.
func (w *sweeper) configure(c *Config) {
	// A tenth of the shortest timeout in Config, so that none of them is late by more
	// than a fifth. It is at most half of lingerTime.
	w.every = min(c.IdleTimeout, c.FirstByteTimeout, c.AuthTimeout, c.WriteTimeout, lingerTime*5) / 10
	w.idle, w.firstByte = w.ticks(c.IdleTimeout), w.ticks(c.FirstByteTimeout)
	w.auth, w.write, w.linger = w.ticks(c.AuthTimeout), w.ticks(c.WriteTimeout), w.ticks(lingerTime)
	w.firstConn = make(chan struct{}, 1)
}

// ticks returns the least number of ticks that last at least d, wherever between two
// ticks d begins. sweep makes no tick shorter than every.
func (w *sweeper) ticks(d time.Duration) int64 {
	return int64((d+w.every-1)/w.every) + 1
}

// wake makes the sweep go on, which sleeps while there are no connections.
func (w *sweeper) wake() {
	select {
	case w.firstConn <- struct{}{}:
	default:
	}
}

// sweep calls sweepOnce in every tick until stop is closed.
func (s *Server) sweep(stop <-chan struct{}) {
	w := &s.sweeper
	t := time.NewTimer(w.every)
	defer t.Stop()
	for {
		if s.counters.open.Load()+s.refusing.Load() == 0 { // a node that nobody uses sleeps
			select {
			case <-stop:
				return
			case <-w.firstConn:
			}
		}
		// A ticker would follow a late tick with a short one.
		t.Reset(w.every)
		select {
		case <-stop:
			return
		case <-t.C:
			s.sweepOnce()
		}
	}
}

// sweepOnce begins a tick. It ends the connections that are past their due tick, and those that must make room.
func (s *Server) sweepOnce() {
	now := s.sweeper.tick.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	var toEnd *surplus
	if s.crowded() {
		toEnd = s.longestIdle()
	}
	for l := range s.listeners {
		if toEnd == nil {
			l.idle, l.reported = nil, false
		}
		l.loop.sweepSoon(toEnd)
	}
	for c := range s.conns {
		if toEnd.takeIfDue(c.due.Load(), now) {
			c.nc.SetDeadline(longAgo)
		}
	}
}

// unlimited is the number of ticks of a connection that may be idle for as long as there is room. Its due tick is
// unlimited plus the tick since which it is idle. The due tick never comes, but shows how long the connection is idle:
// see mayEnd.
const unlimited = math.MaxInt64 / 2

// crowded reports whether more than half of the connections, or of the memory for unfinished
// requests, are in use.
func (s *Server) crowded() bool {
	return s.counters.open.Load() > int64(s.cfg.MaxConns/2) || s.memory.Load() > maxMemory/2
}

// mayEnd reports whether a connection with this due has been idle for IdleTimeout: idle ticks.
func (w *sweeper) mayEnd(due int64) bool {
	return due >= unlimited && due-unlimited+w.idle <= w.tick.Load()
}

// surplus are the idle connections that must make room in one tick: as many as left says, of those
// whose due is limit at most. It is nil while the server is not crowded.
type surplus struct {
	limit int64
	left  atomic.Int64
}

// longestIdle returns the longest idle of the connections that have been idle for IdleTimeout, as many as are over half
// of MaxConns. The last report of each loop counts, and none is returned before each has reported: else a loop that is
// late would keep its connections at the cost of younger ones elsewhere. mu is held.
func (s *Server) longestIdle() *surplus {
	var idle []int64
	for l := range s.listeners {
		if l.loop != nil && !l.reported && !l.draining.Load() {
			return &surplus{}
		}
		idle = append(idle, l.idle...)
	}
	for c := range s.conns {
		if due := c.due.Load(); s.sweeper.mayEnd(due) {
			idle = append(idle, due)
		}
	}
	n := int(s.counters.open.Load()) - s.cfg.MaxConns/2
	if n <= 0 || n > len(idle) { // n <= 0: memory is short
		n = len(idle)
	}
	toEnd := &surplus{}
	if n > 0 {
		slices.Sort(idle)
		toEnd.limit = idle[n-1]
	}
	toEnd.left.Store(int64(n))
	return toEnd
}

// report keeps the dues of idle connections of the loop, for the next tick.
func (l *listener) report(idle []int64) {
	l.srv.mu.Lock()
	defer l.srv.mu.Unlock()
	l.idle, l.reported = idle, true
}

// takeIfDue reports whether a connection with this due must end: because due is past, or as one of the surplus. In the
// second case it counts the connection off.
func (s *surplus) takeIfDue(due, now int64) bool {
	if due <= now {
		return true
	}
	return s != nil && due >= unlimited && due <= s.limit && s.left.Add(-1) >= 0
}
