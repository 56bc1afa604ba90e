package lineproto

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// newTestLoop is a loop with one connection and nobody who drives it, and the
// client's end.
func newTestLoop(t testing.TB, cfg Config) (d *driver, c *loopConn, client int) {
	e := newEngine(newTestServer(t, cfg))
	if err := e.loops.open(e, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.loops.close)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	d = newDriver(e.loops.all[0])
	c = newLoopConn(d.l, fds[0], e.idle, false)
	d.l.load.Inc()
	e.srv.counters.open.Inc()
	d.adopt(c)
	t.Cleanup(func() {
		if c.state != connClosed {
			d.close(c)
		}
	})
	return d, c, fds[1]
}

// TestLoopAllocations: as TestAllocations, from recv to send.
func TestLoopAllocations(t *testing.T) {
	for _, request := range []string{
		"GET\n", "GET\r\n", "GET 100\n", "GET order\n", "PING\n", strings.Repeat("GET\n", 100), "*1\r\n$3\r\nGET\r\n",
	} {
		d, c, client := newTestLoop(t, Config{Backend: &fakeBackend{maxRun: 4096}})
		in, out := []byte(request), make([]byte, 64<<10)
		run := func() {
			if _, err := unix.Write(client, in); err != nil {
				t.Fatal(err)
			}
			if !d.ready(t.Context(), c) || c.state != connReading || len(c.rest) > 0 || c.out != nil {
				t.Fatalf("not answered: state %d", c.state)
			}
			if n, err := unix.Read(client, out); n == 0 || err != nil {
				t.Fatal(n, err)
			}
		}
		run()
		if n := testing.AllocsPerRun(500, run); n != 0 && !raceEnabled {
			t.Errorf("%.20q: %v allocations", request, n)
		}
	}
}

// TestLoopTurns: a connection with more to do than a flush of output waits for
// its next turn, keeps no more than that, and its buffers go when it is done.
func TestLoopTurns(t *testing.T) {
	d, c, client := newTestLoop(t, Config{Backend: &fakeBackend{maxRun: 4096}})
	if _, err := unix.Write(client, []byte("GET 10000\nPING\nPI")); err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 256<<10)
	var got []byte
	read := func() {
		n, err := unix.Read(client, out)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, out[:n]...); n > outBound+512 {
			t.Fatalf("a turn of %d bytes", n)
		}
	}
	d.ready(t.Context(), c)
	read()
	turns := 1
	for c.state == connMore {
		if d.l.pop() != c || d.l.head != nil {
			t.Fatal("not in the queue once")
		}
		d.answer(t.Context(), c, c.rest)
		read()
		turns++
	}
	if c.state != connReading || string(c.rest) != "PI" || c.out != nil || cap(c.rest) > 64 {
		t.Fatalf("state %d, %q left", c.state, c.rest)
	}
	if lines := strings.Count(string(got), "\n"); lines != 10_001 || turns < 3 {
		t.Fatalf("%d lines in %d turns", lines, turns)
	}
}

// TestLoopSlowReader: output that is not read stops the reading of input, and
// goes on where it stopped.
func TestLoopSlowReader(t *testing.T) {
	d, c, client := newTestLoop(t, Config{Backend: &fakeBackend{maxRun: 4096}})
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 8<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(client, []byte("GET 5000\n")); err != nil {
		t.Fatal(err)
	}
	d.ready(t.Context(), c)
	if c.state != connWriting || c.want != unix.EPOLLOUT || c.due != d.l.e.tick.Load()+d.l.e.write {
		t.Fatalf("state %d, asks for %#x, due %d", c.state, c.want, c.due)
	}
	var got []byte
	out := make([]byte, 4<<10)
	for c.state != connReading {
		if n, err := unix.Read(client, out); err == nil {
			got = append(got, out[:n]...)
		} else if err != unix.EAGAIN {
			t.Fatal(err)
		}
		if c.state == connMore {
			d.l.pop()
			d.answer(t.Context(), c, c.rest)
		} else {
			d.ready(t.Context(), c)
		}
	}
	for {
		n, err := unix.Read(client, out)
		if err != nil {
			break
		}
		got = append(got, out[:n]...)
	}
	if lines := strings.Count(string(got), "\n"); lines != 5000 || c.want != unix.EPOLLIN || c.out != nil {
		t.Fatalf("%d lines, asks for %#x", lines, c.want)
	}
}
