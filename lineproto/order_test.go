package lineproto

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// asked is a session with its input.
type asked struct {
	*session
	t  *testing.T
	in []byte
}

func asking(t *testing.T, s *Server, in string) *asked {
	return &asked{&session{srv: s}, t, []byte(in)}
}

// turn gives the session a turn of may IDs, and returns its output.
func (a *asked) turn(allowed int) string {
	a.t.Helper()
	used, then := a.consume(a.t.Context(), a.in, false, allowed)
	if a.in = a.in[used:]; then == finished || a.took > allowed {
		a.t.Fatalf("status %d after %d IDs in a turn of %d", then, a.took, allowed)
	}
	out := string(a.out)
	a.out = a.out[:0]
	return out
}

// all gives the session turns until it has nothing to do.
func (a *asked) all() (out string) {
	for {
		out += a.turn(maxSlice)
		if a.order.n == 0 && len(a.unsent.runs) == 0 && len(a.in) == 0 {
			return out
		}
	}
}

// A GET n that waits gets no answer until it has all of its IDs.
func TestBatchIsAnsweredWhole(t *testing.T) {
	a := asking(t, newTestServer(t, Config{}), "PING\nGET 100\nPING b\n")
	if out := a.turn(tinyOrder); out != "PONG\n" || a.took > 0 {
		t.Fatalf("%q, and %d IDs: it should wait for its turn", out, a.took)
	}
	for got := 30; got < 100; got += 30 {
		if out := a.turn(30); out != "" || a.order.got != got {
			t.Fatalf("%q with %d IDs", out, a.order.got)
		}
	}
	out := a.turn(30)
	if lines := strings.Split(out, "\n"); len(lines) != 102 || lines[0] != "1000" || lines[99] != "1099" ||
		lines[100] != "b" {
		t.Fatalf("%q", out)
	}
}

// If the node begins to refuse IDs during a GET n, the reply is the error alone, in
// whichever turn that happens. The GET n leaves the backlog.
func TestRefusalReplacesTheWholeReply(t *testing.T) {
	for refuseAt := range 4 {
		calls := 0
		b := &fakeBackend{ceiling: 10_000, reserve: func(context.Context, int) error {
			if calls++; calls == refuseAt+1 {
				return replies.New(ids.FENCED, "lease lost")
			}
			return nil
		}}
		s := newTestServer(t, Config{Backend: b})
		a := asking(t, s, "GET 1000\nGET\n")
		if got := a.turn(tinyOrder); got != "" {
			t.Fatal(got)
		}
		got := ""
		for range 10 {
			got += a.turn(300)
		}
		if want := fmt.Sprintf("-FENCED lease lost\n%d\n", 1000+300*refuseAt); got != want || s.backlog.Load() != 0 {
			t.Errorf("refused at %d: %q, want %q; backlog %d", refuseAt, got, want, s.backlog.Load())
		}
	}
}

// Orders are accepted until clients wait for as many IDs as are made in a second.
func TestBacklogIsBounded(t *testing.T) {
	s := newTestServer(t, Config{Backend: &fakeBackend{ceiling: 4000}})
	first, second, third, fourth := asking(t, s, "GET 3000\n"), asking(t, s, "GET 1500\nGET\nGET 9\n"),
		asking(t, s, "GET 1000\n"), asking(t, s, "GET 256\n")
	for _, a := range []*asked{first, second, third, fourth} {
		if out := a.turn(tinyOrder); out != "" || s.backlog.Load() != 0 {
			t.Fatalf("%q, backlog %d: it is not accepted before its turn", out, s.backlog.Load())
		}
	}
	first.turn(minSlice)
	const busy = "-BUSY clients are waiting for too many IDs. Retry later. limit_ids=4000\n"
	if out := second.turn(minSlice); out != busy+"1064\n"+idLines(1065, 9) {
		t.Fatalf("%q, want to be refused, and to go on", out)
	}
	if out := third.turn(minSlice); out != "" || s.backlog.Load() != 3000-minSlice+1000-minSlice {
		t.Fatalf("%q, backlog %d", out, s.backlog.Load())
	}
	if out := fourth.turn(minSlice); out != "" || fourth.order.got != minSlice {
		t.Fatalf("%q: small orders are never refused", out)
	}
	for _, a := range []*asked{first, third, fourth} {
		if out := a.all(); strings.Contains(out, "-") {
			t.Fatalf("%q", out)
		}
	}
	if s.backlog.Load() != 0 {
		t.Fatalf("backlog %d is left", s.backlog.Load())
	}
	// A request for more than a second's IDs is accepted if no other client waits.
	if out := asking(t, s, "GET 10000\n").all(); strings.Count(out, "\n") != 10_000 {
		t.Fatalf("%.100q", out)
	}
	var refused int64
	for _, r := range s.Counters().Requests {
		if r.Command == "GET" && r.Result == "BUSY" {
			refused = r.N
		}
	}
	if refused != 1 {
		t.Fatalf("%d counted", refused)
	}
}

func idLines(first int64, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, first+int64(i))
	}
	return b.String()
}

// Clients that have stopped sending fill no more than half of the backlog.
func TestHalfClosedClientsGetHalfOfTheBacklog(t *testing.T) {
	s := newTestServer(t, Config{Backend: &fakeBackend{ceiling: 4000}})
	waiting := func(n int, halfClosed bool) (accepted bool) {
		a := asking(t, s, fmt.Sprintf("GET %d\n", n))
		a.halfClosed = halfClosed
		a.turn(tinyOrder)
		return a.turn(minSlice) == ""
	}
	for i, row := range []struct {
		n                int
		halfClosed, want bool
	}{{1900, true, true}, {300, true, false}, {300, false, true}, {1000, false, true}, {500, true, false},
		{500, false, true}, {1000, false, false}} {
		if got := waiting(row.n, row.halfClosed); got != row.want {
			t.Errorf("%d: GET %d, half closed %v: accepted %v; backlog %d", i, row.n, row.halfClosed, got,
				s.backlog.Load())
		}
	}
}

// vanish ends a connection so that the server does not take it for half-closed.
func (c *client) vanish() {
	if tcp, ok := c.stream.(*net.TCPConn); ok {
		tcp.SetLinger(0) // Close resets
	}
	c.Close()
}

// slow returns a fakeBackend that makes perTick IDs in a millisecond and no more, as a worker does. It refuses to when
// refuse is set.
func slow(perTick int) (b *fakeBackend, refuse *atomic.Bool) {
	var mu sync.Mutex   // guards what follows
	var until time.Time // the end of the present tick
	var left int        // IDs of the tick
	refuse = new(atomic.Bool)
	b = &fakeBackend{reserve: func(context.Context, int) error {
		if refuse.Load() {
			return replies.New(ids.NOTREADY, "stopping")
		}
		return nil
	}}
	b.tick = func(n int) (k int, p worker.Pause) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.After(until) {
			until, left = now.Truncate(time.Millisecond).Add(time.Millisecond), perTick
		}
		if k = min(n, left); k == 0 {
			p.For = max(until.Sub(now), 1)
		}
		left -= k
		return k, p
	}
	return b, refuse
}

// TestLostConnectionIsNotServed: no IDs are made for clients that are gone before their turn.
func TestLostConnectionIsNotServed(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		const conns, each = 50, 10_000
		b, _ := slow(16) // half a minute for all
		r := w.serve(t, Config{Backend: b})
		var clients []*client
		for range conns {
			c := r.dial(t)
			c.send(fmt.Sprintf("GET %d\n", each))
			clients = append(clients, c)
		}
		until(t, "all wait", func() bool { return r.backlog.Load() > conns*each/2 })
		for _, c := range clients {
			c.vanish()
		}
		until(t, "all are gone", func() bool { return r.Counters().ConnsOpen == 0 })
		if made := b.last.Load() - 999; made > conns*each/2 || r.backlog.Load() != 0 {
			t.Errorf("%d IDs were made of %d; %d are in the backlog", made, conns*each, r.backlog.Load())
		}
	})
}

// TestGreedyClientsDoNotDelaySmallRequests: requests for a few IDs are answered
// before most of the large ones that were received earlier.
func TestGreedyClientsDoNotDelaySmallRequests(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		const conns, each = 100, 10_000
		b, refuse := slow(256) // four seconds for all
		r := w.serve(t, Config{Backend: b})
		defer refuse.Store(true)
		for range conns {
			r.dial(t).send(fmt.Sprintf("GET %d\n", each))
		}
		until(t, "all wait", func() bool { return r.backlog.Load() > conns*each/2 })
		other := r.dial(t)
		for _, n := range []int{1, 1, tinyOrder, 100, smallOrder} {
			before := b.last.Load()
			other.send(fmt.Sprintf("GET %d\n", n))
			for range n {
				other.line()
			}
			if made := b.last.Load() - before; made > conns*each/4 {
				t.Errorf("GET %d waited for %d IDs of %d", n, made, conns*each)
			}
		}
	})
}
