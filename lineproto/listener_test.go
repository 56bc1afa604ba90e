package lineproto

import (
	"io"
	"net"
	"strings"
	"testing"
)

const busyLine = "-BUSY too many connections limit=2\r"

// TestConnectionLimit: a connection over MaxConns is told BUSY and closed. Refused
// clients that keep their side open keep nobody from being served.
func TestConnectionLimit(t *testing.T) {
	limitWires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{MaxConns: 2})
		a, b := r.dial(t), r.dial(t)
		a.send("GET\n")
		a.want("1000")
		b.send("GET\n")
		b.want("1001")
		for range 20 { // left open by their clients
			c := r.dial(t)
			c.send("GET\nGET\n") // unread input must not turn the close into a reset
			c.want(busyLine)
			c.wantEOF()
		}
		until(t, "the refused ones are closed", func() bool { return r.refusing.Load() == 0 && r.Counters().ConnsOpen == 2 })
		if c := r.Counters(); c.ConnsTotal != 2 || c.ConnsRefused != 20 || c.IDs != 2 {
			t.Fatalf("%+v", c)
		}

		a.send("QUIT\n")
		a.wantEOF()
		a.Close()
		for { // a client sees the close before the place is free
			c := r.dial(t)
			c.send("PING\n")
			if line := c.line(); line == "PONG" {
				break
			} else if line != busyLine {
				t.Fatalf("got %q", line)
			}
			c.Close()
		}
	})
}

// TestRefusingIsBounded: the server answers up to maxRefusing connections over the
// limit with BUSY. It closes the others without a reply, and goes on accepting.
func TestRefusingIsBounded(t *testing.T) {
	l := newPipeListener()
	serveOn(t, newTestServer(t, Config{MaxConns: 1}), l)
	kept := l.dial()
	conns := make([]net.Conn, maxRefusing+10) // no client reads: writes block
	for i := range conns {
		conns[i] = l.dial()
	}
	for _, nc := range conns[maxRefusing:] {
		if b, err := io.ReadAll(nc); len(b) > 0 || err != nil {
			t.Fatalf("got %q, %v, want EOF", b, err)
		}
	}
	for _, nc := range conns[:maxRefusing] {
		if b, err := io.ReadAll(nc); !strings.HasPrefix(string(b), "-BUSY ") || err != nil {
			t.Fatalf("got %q, %v, want BUSY", b, err)
		}
	}
	ask(t, kept, "PING\n", "PONG\n")
}

// TestListenersShareTheLimit: MaxConns holds for all listeners together.
func TestListenersShareTheLimit(t *testing.T) {
	s := newTestServer(t, Config{MaxConns: 2})
	l1, l2 := newPipeListener(), newPipeListener()
	serveOn(t, s, l1)
	serveOn(t, s, l2)
	ask(t, l1.dial(), "PING\n", "PONG\n")
	ask(t, l2.dial(), "PING\n", "PONG\n")
	for _, l := range []*pipeListener{l1, l2} {
		if b, err := io.ReadAll(l.dial()); string(b) != busyLine+"\n" || err != nil {
			t.Fatalf("got %q, %v", b, err)
		}
	}
}
