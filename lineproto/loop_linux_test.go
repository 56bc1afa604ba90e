package lineproto

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/testkit/race"
)

// newTestLoop returns a loop with one connection, and the client's end of that. No
// goroutine runs the loop: tests call its methods.
func newTestLoop(t testing.TB, cfg Config) (l *loop, c *loopConn, client int) {
	from := newListener(newTestServer(t, cfg))
	var err error
	if from.loop, err = newLoop(from); err != nil {
		t.Fatal(err)
	}
	l = from.loop
	t.Cleanup(l.free)
	c, client = l.connect(t)
	return l, c, client
}

// connect adds a connection to a loop and returns it with the client's end.
func (l *loop) connect(t testing.TB) (c *loopConn, client int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	c = newLoopConn(l, fds[0], unlimited, false)
	l.srv.counters.open.Add(1)
	l.adopt(c)
	t.Cleanup(func() {
		if c.state != connClosed {
			l.close(c)
		}
	})
	return c, fds[1]
}

// sent sends something as the client, and reports EPOLLIN and events to the loop.
func (l *loop) sent(t testing.TB, c *loopConn, client int, in string, events uint32) {
	t.Helper()
	if _, err := unix.Write(client, []byte(in)); err != nil {
		t.Fatal(err)
	}
	l.ready(t.Context(), c, unix.EPOLLIN|events)
}

// TestLoopAllocations: common requests allocate nothing, from recv to send.
func TestLoopAllocations(t *testing.T) {
	for _, in := range []string{
		"GET\n", "GET\r\n", "get\n", "GET 100\n", "GET order\n", "MGET a b c\n", "PING\n", "TIME\n", "READY\n",
		strings.Repeat("GET\n", 100), strings.Repeat("GET\r\nPING\n", 100), request("GET"), request("GET", "order"),
		request("GET", "order", "COUNT", "100"), request("MGET", "a", "b"), request("PING"), request("TIME"),
		strings.Repeat(getArray+request("PING")+"GET\n", 20),
		"NEXT order\n", "NEXT user:20261122-of-a-long-name-with-more-than-32-bytes\r\n", "NEXT order 50\n",
		"RANGE order 50\n", passTo("order 50"), "INCRBY order 5\n", strings.Repeat("NEXT order\n", 50),
		strings.Repeat("NEXT user:a\nNEXT user:b\n", 20), request("NEXT", "order"),
		strings.Repeat(request("INCR", "order"), 20),
	} {
		cfg := Config{Backend: &fakeBackend{maxRun: 4096}, Sequences: newFakeSequences()}
		l, c, client := newTestLoop(t, cfg)
		c.s.rights, _ = limited([]byte("some"))
		bytes, out := []byte(in), make([]byte, 64<<10)
		run := func() {
			if _, err := unix.Write(client, bytes); err != nil {
				t.Fatal(err)
			}
			if l.ready(t.Context(), c, unix.EPOLLIN); c.state != connReading || len(c.rest) > 0 || c.s.buf != nil {
				t.Fatalf("not answered: state %d", c.state)
			}
			if n, err := unix.Read(client, out); n == 0 || err != nil || out[0] == '-' {
				t.Fatal(n, err)
			}
		}
		run()
		if n := testing.AllocsPerRun(500, run); n != 0 && !race.Enabled {
			t.Errorf("%.20q: %v allocations", in, n)
		}
	}
}

// TestLoopTurns: a connection with more to do than one flush waits for its next turn. A
// turn writes one flush, and a connection that is done has no buffers.
func TestLoopTurns(t *testing.T) {
	l, c, client := newTestLoop(t, Config{Backend: &fakeBackend{maxRun: 4096}})
	if _, err := unix.Write(client, []byte("GET 10000\nPING\nPI")); err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 256<<10)
	var got []byte
	read := func() {
		n, err := unix.Read(client, out)
		if err != nil && err != unix.EAGAIN { // a turn may reserve and write nothing
			t.Fatal(err)
		}
		if got = append(got, out[:max(n, 0)]...); n > outBound+512 {
			t.Fatalf("a turn of %d bytes", n)
		}
	}
	l.ready(t.Context(), c, unix.EPOLLIN)
	read()
	turns := 1
	for c.state == connQueued {
		p := l.turns.next(numRanks)
		if p != &c.place || l.turns.waiting(numRanks) > 0 {
			t.Fatal("not in the queue once")
		}
		l.answer(t.Context(), c, c.rest, maxSlice)
		l.turns.done(p, c.s.took, false)
		if c.s.took > maxSlice {
			t.Fatalf("a turn of %d IDs", c.s.took)
		}
		read()
		turns++
	}
	if c.state != connReading || string(c.rest) != "PI" || c.s.buf != nil || cap(c.rest) > 64 {
		t.Fatalf("state %d, %q left", c.state, c.rest)
	}
	if lines := strings.Count(string(got), "\n"); lines != 10_001 || turns < 3 {
		t.Fatalf("%d lines in %d turns", lines, turns)
	}
}

// TestLoopPollsAfterOneRoundOfWork: between two polls for events a loop does one round of work, and
// waits for one tick at most.
func TestLoopPollsAfterOneRoundOfWork(t *testing.T) {
	for _, row := range []struct {
		name     string
		tick     int64
		from, to int64
	}{
		{"IDs are plenty", 1 << 40, roundOfIDs, roundOfIDs + maxSlice},
		{"a tick runs out at once", 10, 10, 10},
	} {
		b := tickOf(row.tick)
		l, c, client := newTestLoop(t, Config{Backend: b})
		l.sent(t, c, client, "GET 10000\n", 0)
		for range 99 {
			c, client := l.connect(t)
			l.sent(t, c, client, "GET 10000\n", 0)
		}
		if l.turns.waiting(numRanks) != 100 || b.last.Load() != 0 {
			t.Fatalf("%s: %d wait, %d IDs were made", row.name, l.turns.waiting(numRanks), b.last.Load())
		}
		l.giveTurns(t.Context())
		if made := b.last.Load() - 999; made < row.from || made > row.to || l.turns.waiting(numRanks) != 100 {
			t.Errorf("%s: %d IDs were made in a round, %d wait", row.name, made, l.turns.waiting(numRanks))
		}
	}
}

// TestScarceIDsDelayLargeRequestsOnly: while IDs are scarce, requests for many IDs wait behind others, and
// requests for a few do not.
func TestScarceIDsDelayLargeRequestsOnly(t *testing.T) {
	l, c, client := newTestLoop(t, Config{})
	l.sent(t, c, client, "GET 10000\n", 0)
	out := make([]byte, 64<<10)
	for _, row := range []struct {
		request string
		scarce  bool
		state   connState
	}{
		{"GET 1000\n", false, connReading}, {"GET 16\n", true, connReading}, {"GET\n", true, connReading},
		{"GET 17\n", true, connQueued}, {strings.Repeat("GET\n", 17), true, connQueued},
	} {
		l.turns.note(plenty, row.scarce)
		c, client := l.connect(t)
		l.sent(t, c, client, row.request, 0)
		if n, _ := unix.Read(client, out); c.state != row.state || (n > 0) != (row.state == connReading) {
			t.Errorf("%.10q, scarce %v: state %d after %d bytes", row.request, row.scarce, c.state, n)
		}
	}
}

// TestLoopWatchesWaitingConnections: epoll reports each event of a connection in the
// queue once, and a lost connection is not served.
func TestLoopWatchesWaitingConnections(t *testing.T) {
	l, c, client := newTestLoop(t, Config{Backend: tickOf(100)})
	l.sent(t, c, client, "GET 10000\n", 0)
	l.giveTurns(t.Context())
	expect := func(what string, state connState, want uint32, in *queue) {
		t.Helper()
		if c.state != state || c.want != want || c.place.in != in {
			t.Fatalf("%s: state %d, asks for %#x, in its queue %v", what, c.state, c.want, c.place.in == in)
		}
	}
	queues := &l.turns.queues
	expect("waiting", connQueued, awaitInput, &queues[rankLarge])
	l.sent(t, c, client, "PING\n", 0)
	expect("with more input", connQueued, awaitEnd, &queues[rankLarge])
	l.ready(t.Context(), c, unix.EPOLLRDHUP)
	expect("half closed", connQueued, awaitLoss, &queues[rankLeaving])
	backlog := l.srv.backlog.Load()
	l.ready(t.Context(), c, unix.EPOLLHUP|unix.EPOLLRDHUP)
	expect("gone", connClosed, awaitLoss, nil)
	if now := l.srv.backlog.Load(); backlog != 9900 || now != 0 {
		t.Errorf("the backlog was %d and is %d", backlog, now)
	}
}

// TestHalfClosedClientWaitsBehindOthers: a client that stops sending before it is read waits behind all
// others with a large order. With a small one it waits like them.
func TestHalfClosedClientWaitsBehindOthers(t *testing.T) {
	l, c, client := newTestLoop(t, Config{})
	l.sent(t, c, client, "GET 10000\n", unix.EPOLLRDHUP)
	if c.place.in != &l.turns.queues[rankLeaving] {
		t.Error("it does not wait behind the others")
	}
	l.turns.note(0, true)
	c, client = l.connect(t)
	l.sent(t, c, client, "GET 100\n", unix.EPOLLRDHUP)
	if c.place.in != &l.turns.queues[rankSmall] {
		t.Error("a small order does not wait where others do")
	}
}

// TestLoopDropsLostConnections: a lost connection is closed without being read.
func TestLoopDropsLostConnections(t *testing.T) {
	b := &fakeBackend{}
	for _, events := range []uint32{unix.EPOLLHUP, unix.EPOLLERR} {
		l, c, client := newTestLoop(t, Config{Backend: b})
		if l.sent(t, c, client, "GET 5\n", events); c.state != connClosed || b.last.Load() != 0 {
			t.Errorf("%#x: state %d, %d IDs were made", events, c.state, b.last.Load())
		}
	}
}

// TestLoopSweepsInParts: of many connections that are overdue, each call of sweep
// closes only closedInARound.
func TestLoopSweepsInParts(t *testing.T) {
	l, _, _ := newTestLoop(t, Config{})
	const conns = 3*closedInARound + 2
	for range conns - 1 {
		l.connect(t)
	}
	for _, c := range l.conns {
		if c != nil {
			c.due = 0
		}
	}
	l.obey(mail{sweep: true})
	for left := conns; left > 0; {
		left = max(left-closedInARound, 0)
		if l.wait(); l.open < left { // blocks if the sweep counts as finished
			t.Fatal("closed without a sweep")
		}
		if l.sweep(); l.open != left {
			t.Fatalf("%d are open, want %d", l.open, left)
		}
	}
	if n := l.srv.Counters().ConnsIdle; n != conns {
		t.Errorf("%d were counted", n)
	}
}

// A loop yields while its waits are short, every 4 ms, and only if Go has a second processor.
func TestLoopYieldsWhileItsWaitsAreShort(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	for _, c := range []struct {
		name       string
		processors int
		waits      []time.Duration // from one wait to the next, in turn
		want       int             // yields in 120 ms
	}{
		{"50,000 requests a second", 2, []time.Duration{20 * us}, 30},
		{"1,000 requests a second", 2, []time.Duration{ms}, 30},
		{"many processors", 64, []time.Duration{ms}, 30},
		{"just short", 2, []time.Duration{3 * ms}, 20},
		{"long", 2, []time.Duration{5 * ms}, 0},
		{"an idle node", 2, []time.Duration{60 * ms}, 0},
		{"a pause among short waits", 2, []time.Duration{20 * ms, ms, ms, ms, ms, ms, ms, ms, ms, ms, ms}, 12},
		{"two requests, again and again", 2, []time.Duration{15 * ms, ms}, 0},
		{"one processor", 1, []time.Duration{20 * us}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.processors))
			var y yields
			got, from := 0, 1200*ms // the mean has settled
			for now, k := time.Duration(0), 0; now < from+120*ms; k++ {
				now += c.waits[k%len(c.waits)]
				if y.due(int64(now)) && now > from && now <= from+120*ms {
					got++
				}
			}
			if got != c.want {
				t.Errorf("%d yields, want %d", got, c.want)
			}
		})
	}
}
