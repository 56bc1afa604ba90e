package lineproto

import (
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
			time.Sleep(24 * time.Hour)
			ask(t, asked, "PING\n", "PONG\n")
			ask(t, silent, "PING\n", "PONG\n")
		}
	})
}

// TestWaitingConnectionIsNotIdle: no timeout ends a connection that waits for the node.
func TestWaitingConnectionIsNotIdle(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		f := asleep()
		r := w.serve(t, Config{Sequences: f, IdleTimeout: 50 * time.Millisecond, WriteTimeout: 20 * time.Millisecond,
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
