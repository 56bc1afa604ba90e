package lineproto

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// unfinished is a request that is not whole. A session takes up to maxHeld bytes for
// it, the most there are.
var unfinished = "*2\r\n$4\r\nECHO\r\n$60000\r\n" + strings.Repeat("x", 59_000)

// TestUnfinishedRequestsShareAMemoryLimit: unfinished requests of all connections share a bound. A connection
// beyond it gets BUSY, and memory that is given back is free for others.
func TestUnfinishedRequestsShareAMemoryLimit(t *testing.T) {
	s := newTestServer(t, Config{})
	send := func() (ss *session, held bool) {
		ss = &session{srv: s}
		_, then := ss.consume(t.Context(), []byte(unfinished), false, maxSlice)
		return ss, then == needInput
	}
	var holding []*session
	for {
		ss, held := send()
		if !held {
			if want := "-BUSY unfinished requests and unread replies use too much " +
				"memory. Retry later. limit_bytes=67108864\r\n"; string(ss.out) != want || ss.arrays.held != nil {
				t.Fatalf("got %q, want %q", ss.out, want)
			}
			break
		}
		if holding = append(holding, ss); len(holding) > maxMemory/len(unfinished) {
			t.Fatalf("%d connections hold %d bytes each", len(holding), len(unfinished))
		}
	}
	if len(holding) < maxMemory/maxHeld {
		t.Fatalf("the %d. of them was refused", len(holding)+1)
	}
	holding[0].end()
	if ss, held := send(); !held {
		t.Fatalf("got %q", ss.out)
	} else {
		holding[0] = ss
	}
	for _, ss := range holding {
		if _, then := ss.consume(t.Context(), []byte(strings.Repeat("x", 1000)+"\r\n"), false,
			maxSlice); then == finished || !strings.HasSuffix(string(ss.out), "x\r\n") {
			t.Fatalf("status %d, %.80q", then, ss.out)
		}
	}
	if n := s.memory.Load(); n != 0 {
		t.Fatalf("%d bytes are left", n)
	}
}

// Long replies that clients do not read count under the same bound. A client beyond it is cut off.
func TestUnreadRepliesShareTheMemoryLimit(t *testing.T) {
	echo := request("ECHO", strings.Repeat("x", 60_000))
	limitWires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{})
		// silent returns a connection that has sent so many requests that replies are stuck.
		silent := func() net.Conn {
			nc := r.dial(t)
			_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
			for range 200 {
				if _, err := io.WriteString(nc, echo); err != nil {
					break
				}
			}
			return nc
		}
		nc := silent()
		until(t, "a reply is stuck", func() bool { return r.memory.Load() > 0 })
		r.memory.Add(maxMemory)
		cut := silent()
		_ = cut.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, cut); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a client beyond the bound is not cut off")
		}
		r.memory.Add(-maxMemory)
		nc.Close()
		until(t, "nothing is counted", func() bool { return r.memory.Load() == 0 })
	})
}

// A transaction counts under the bound until it ends, however it ends.
func TestTransactionsShareTheMemoryLimit(t *testing.T) {
	s := newTestServer(t, Config{})
	for _, end := range []string{request("EXEC"), request("DISCARD"), request("RESET"),
		request("FOO") + request("EXEC")} {
		ss := &session{srv: s}
		say := func(in string) {
			t.Helper()
			for len(in) > 0 {
				used, then := ss.consume(t.Context(), []byte(in), false, maxSlice)
				if in, ss.out = in[used:], nil; then == finished {
					t.Fatalf("it ends: %.80q", in)
				}
			}
		}
		say(request("MULTI") + strings.Repeat(request("ECHO", strings.Repeat("x", 1000)), 50) + request("PING"))
		if n := s.memory.Load(); n < 50_000 || n > 2*maxArray {
			t.Errorf("%d bytes are counted", n)
		}
		say(end + request("PING") + request("PING"))
		if n := s.memory.Load(); n != 0 {
			t.Errorf("%d bytes are left after %q", n, end)
		}
	}
	ss := &session{srv: s}
	long := strings.Repeat(request("ECHO", strings.Repeat("x", 1000)), 80)
	_, _ = ss.consume(t.Context(), []byte(request("MULTI")+long+request("EXEC")), false, maxSlice)
	if out := string(ss.out); !strings.Contains(out, longArray) ||
		!strings.HasSuffix(out, "-EXECABORT Transaction discarded because of previous errors.\r\n") {
		t.Errorf("%.200q ... %.200q", out, out[max(0, len(out)-200):])
	}
}

// TestAuthTimeout: a client without a valid token is closed, whatever it sends. A
// client that has sent one stays.
func TestAuthTimeout(t *testing.T) {
	const limit = 400 * time.Millisecond
	limitWires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{Authenticate: isGood, AuthTimeout: limit})
		good := r.dial(t)
		good.send("AUTH good\n")
		good.want("OK")
		start := time.Now()
		bad := r.dial(t)
		until(t, "who talks without a token is closed", func() bool {
			if _, err := io.WriteString(bad, "PING\n"); err != nil {
				return true
			}
			line, err := bad.r.ReadString('\n')
			if err == nil && line != noAuth {
				t.Fatalf("got %q", line)
			}
			return err != nil
		})
		if d := time.Since(start); d < limit {
			t.Fatalf("closed after %v, want %v", d, limit)
		}
		good.send("GET\n")
		good.want("1000")
		until(t, "only the good one is open", func() bool { return r.Counters().ConnsOpen == 1 })
		// The timeout may end a write. The client then counts as slow.
		if c := r.Counters(); c.ConnsIdle+c.ConnsSlow != 1 {
			t.Fatalf("%+v", c)
		}
	})
}
