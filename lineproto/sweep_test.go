package lineproto

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleConnectionStaysWhileThereIsRoom: half of the connections may be idle for as long as they like.
func TestIdleConnectionStaysWhileThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		serveOn(t, newTestServer(t, Config{MaxConns: 4}), l)
		asked, silent := l.dial(), l.dial()
		ask(t, asked, "PING\n", "PONG\n")
		for range 2 {
			time.Sleep(2 * time.Hour)
			ask(t, asked, "PING\n", "PONG\n")
			ask(t, silent, "PING\n", "PONG\n")
		}
	})
}

// TestSweepOutlivesAListener: while one of several listeners ends, and after all have ended and another has come, the
// connections of the rest have their time limits. One round ends each of them once, and none is left.
func TestSweepOutlivesAListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, Config{Authenticate: isGood})
		first, second, third := newPipeListener(), newPipeListener(), newPipeListener()
		ends, stays := serveOn(t, s, first), serveOn(t, s, second)
		synctest.Wait()
		gone, silent := first.dial(), second.dial()
		time.Sleep(10 * time.Second)
		if err := ends.stop(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(gone); len(b) > 0 || err != nil {
			t.Errorf("%q, %v: the connection of the listener that ended is left", b, err)
		}
		within(t, "beside a listener that ended", closedAfter(t, silent), 20*time.Second, 23*time.Second)
		if err := stays.stop(); err != nil {
			t.Fatal(err)
		}
		serveOn(t, s, third)
		synctest.Wait()
		within(t, "after all had ended", closedAfter(t, third.dial()), 30*time.Second, 33*time.Second)
		synctest.Wait()
		if c := s.Counters(); c.ConnsIdle != 2 || c.ConnsOpen != 0 || len(s.conns) != 0 || len(s.listeners) != 1 {
			t.Errorf("%+v, %d connections, %d listeners", c, len(s.conns), len(s.listeners))
		}
	})
}

// TestWaitingConnectionIsNotIdle: no timeout ends a connection that waits for the node.
func TestWaitingConnectionIsNotIdle(t *testing.T) {
	limitWires(t, func(t *testing.T, w wire) {
		f := asleep()
		r := w.serve(t, Config{Sequences: f, IdleTimeout: 50 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
			MaxConns: 2})
		c := r.dial(t)
		c.send("PING\nNEXT slow\n")
		c.want("PONG")
		until(t, "it waits", func() bool { return f.waiting() == 1 })
		for range 3 { // c waits for longer than each of them is idle
			until(t, "there is room", func() bool { return r.Counters().ConnsOpen < 2 })
			other := r.dial(t)
			other.send("PING\n")
			other.want("PONG")
			other.wantEOF()
		}
		f.wakeAll()
		c.want("1")
		until(t, "they are counted", func() bool { return r.Counters().ConnsIdle == 3 })
	})
}

// idle returns the number of connections with a goroutine that wait for a request.
func idle(s *Server) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.due.Load() >= unlimited {
			n++
		}
	}
	return n
}

// TestLateLoopKeepsNoConnection: a connection makes room only when all loops have said which of theirs are idle, and
// one that is late has said it before.
func TestLateLoopKeepsNoConnection(t *testing.T) {
	s := newTestServer(t, Config{MaxConns: 2})
	s.counters.open.Store(2)
	a, b := newListener(s), newListener(s)
	a.loop, b.loop = &loop{}, &loop{}
	s.listeners = map[*listener]struct{}{a: {}, b: {}}
	want := func(when string, limit, left int64) {
		t.Helper()
		if got := s.longestIdle(); got.limit != limit || got.left.Load() != left {
			t.Errorf("%s: %d connections up to %d make room, want %d up to %d", when, got.left.Load(), got.limit, left, limit)
		}
	}
	want("before any report", 0, 0)
	a.report([]int64{unlimited + 5})
	want("before the second report", 0, 0)
	b.report([]int64{unlimited + 1})
	want("after both", unlimited+1, 1)
	a.report([]int64{unlimited + 5})
	want("the second is late", unlimited+1, 1)
	b.idle, b.reported = nil, false
	b.draining.Store(true)
	want("the second ends, and will not report", unlimited+5, 1)
}

// TestTheIdlestMakeRoomAtAllListeners: as many idle connections are closed as are over half of MaxConns, the longest
// idle ones, whichever listener has them.
func TestTheIdlestMakeRoomAtAllListeners(t *testing.T) {
	t.Parallel()
	for _, goroutines := range []bool{false, true} {
		w := wire{network: "tcp", goroutines: goroutines}
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			r := w.serve(t, Config{MaxConns: 8, IdleTimeout: 100 * time.Millisecond})
			other := serveOn(t, r.Server, w.listen(t))
			pass := func(ticks int64) {
				from := r.sweeper.tick.Load()
				until(t, "ticks pass", func() bool { return r.sweeper.tick.Load() >= from+ticks })
			}
			speak := func(c *client) *client {
				t.Helper()
				c.send("PING\n")
				c.want("PONG")
				return c
			}
			var oldest []*client
			last := speak(r.dial(t))
			for range 2 { // each has been idle for a tick longer than the next
				oldest = append(oldest, speak(r.dial(t)))
				if goroutines { // a connection is idle when its goroutine waits again, which may be after the reply
					until(t, "all are idle", func() bool { return idle(r.Server) == len(oldest)+1 })
				}
				speak(last) // a loop answers only after it has noted since when the one before is idle
				pass(1)
			}
			kept := []*client{speak(last), speak(other.dial(t))}
			pass(20) // all are idle for long
			for i, c := range oldest {
				kept = append(kept, speak(other.dial(t))) // one more than half
				c.wantEOF()
				pass(5)
				if n := r.Counters().ConnsIdle; n != int64(i+1) {
					t.Fatalf("%d connections were closed, want %d", n, i+1)
				}
			}
			for _, c := range kept {
				speak(c)
			}
		})
	}
}
