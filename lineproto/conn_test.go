package lineproto

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/race"
)

// TestMixedPipelining: long and short replies keep their order across buffers.
func TestMixedPipelining(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{Backend: &fakeBackend{maxRun: 4096}})
		c := r.dial(t)
		next := 1000
		ids := func(n int) {
			for range n {
				c.want(strconv.Itoa(next))
				next++
			}
		}
		for range 20 {
			c.send(strings.Repeat("GET\nGET 10\nPING a\n", 100) + "GET 10000\nPING b\nGET x\n")
		}
		for range 20 {
			for range 100 {
				ids(11)
				c.want("a")
			}
			ids(10000)
			c.want("b")
			ids(1)
		}
	})
}

func TestHalfClose(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		for in, out := range map[string]string{
			"GET":                                   "1000\n",
			"GET\nGET\r\nGET 2":                     "1000\n1001\r\n1002\n1003\n",
			"":                                      "",
			strings.Repeat("GET\n", 5000) + "PIN":   "-ERR unknown command \"PIN\", HELP lists them\n",
			strings.Repeat("PING\n", 5000) + "PING": "PONG\n",
		} {
			r := w.serve(t, Config{})
			c := r.dial(t)
			c.send(in)
			c.CloseWrite()
			got, err := io.ReadAll(c)
			if err != nil || !strings.HasSuffix(string(got), out) || out == "" && len(got) > 0 {
				t.Errorf("%.20q: got %.40q, %v, want %q at the end", in, got, err, out)
			}
			if n := strings.Count(string(got), "\n"); n < strings.Count(in, "\n") {
				t.Errorf("%.20q: %d lines", in, n)
			}
		}
	})
}

// TestLastReplyArrivesBeforeClose: the last replies arrive although the client goes on sending. The
// server must not reset the connection.
func TestLastReplyArrivesBeforeClose(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		for in, out := range map[string]string{
			"QUIT\n":                  "1000\n",
			"\x00":                    "1000\n-ERR request contains a NUL byte\n",
			strings.Repeat("x", 2000): "1000\n" + tooLong,
			"POST / HTTP/1.1\r\n\r\n": "1000\n" + http400,
			"*1\r\n$x\r\n":            "1000\n" + badBulk,
			"*1\r\n$4\r\nQUIT\r\n":    "1000\n+OK\r\n",
		} {
			r := w.serve(t, Config{AdminHint: hint})
			c := r.dial(t)
			c.send("GET\n" + in + strings.Repeat("more\n", 100_000))
			got, err := io.ReadAll(c)
			if err != nil || string(got) != out {
				t.Errorf("%.20q: got %.200q, %v, want %q", in, got, err, out)
			}
			c.Close()
		}
	})
}

// TestAllocations: common requests allocate nothing, from the bytes read to the bytes
// to be written.
func TestAllocations(t *testing.T) {
	s := newTestServer(t, Config{Backend: &fakeBackend{maxRun: 4096}})
	for _, request := range []string{
		"GET\n", "GET\r\n", "get\n", "GET 100\n", "GET 10000\n", "GET order\n", "MGET a b c\n", "PING\n", "TIME\n",
		"READY\n",
		strings.Repeat("GET\n", 200), strings.Repeat("GET\r\nPING\n", 100),
		getArray, request("GET", "order"), request("get", "key:000000000001"), request("GET", "order", "COUNT", "100"),
		request("MGET", "a", "b"), request("PING"), request("TIME"),
		strings.Repeat(getArray, 70), strings.Repeat(request("GET", "order"), 30),
		strings.Repeat(getArray+request("PING")+"GET\n", 20),
	} {
		c := newConn(newEngine(s), discardConn{})
		run := func() {
			c.r, c.w = 0, copy(c.in[:], request)
			if !c.answer(t.Context(), false) || c.r != c.w {
				t.Fatal("not answered")
			}
		}
		run()
		if n := testing.AllocsPerRun(500, run); n != 0 && !race.Enabled {
			t.Errorf("%.20q: %v allocations", request, n)
		}
	}
}

// discardConn discards everything that is written to it.
type discardConn struct{ net.Conn }

func (discardConn) Write(b []byte) (int, error) { return len(b), nil }
