package lineproto

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Tests of timeouts, in synctest's time over net.Pipe.

// closedAfter waits for the server to close nc without a reply and returns how long it
// took.
func closedAfter(t *testing.T, nc net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	if b, err := io.ReadAll(nc); err != nil || len(b) > 0 {
		t.Fatalf("got %q, %v, want EOF", b, err)
	}
	return time.Since(start)
}

func within(t *testing.T, what string, got, from, to time.Duration) {
	t.Helper()
	if got < from || got > to {
		t.Fatalf("%s: closed after %v, want %v to %v", what, got, from, to)
	}
}

func ask(t *testing.T, nc net.Conn, request, reply string) {
	t.Helper()
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(reply))
	if _, err := io.ReadFull(nc, b); err != nil || string(b) != reply {
		t.Fatalf("%q: got %q, %v, want %q", request, b, err, reply)
	}
}

// oneOrTwo runs a test in synctest's time with one listener, and with two. The client of the other listener is there
// first and asks each minute. others is 1 then, else 0.
func oneOrTwo(t *testing.T, cfg Config, test func(t *testing.T, r *running, l *pipeListener, others int64)) {
	for others, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := cfg
				cfg.MaxConns += others
				l, s := newPipeListener(), newTestServer(t, cfg)
				r := serveOn(t, s, l)
				if others > 0 {
					first := newPipeListener()
					serveOn(t, s, first)
					synctest.Wait()
					nc, end := first.dial(), make(chan struct{})
					ask(t, nc, "PING\n", "PONG\n")
					go func() {
						defer nc.Close()
						for {
							select {
							case <-end:
								return
							case <-time.After(time.Minute):
								ask(t, nc, "PING\n", "PONG\n")
							}
						}
					}()
					defer close(end)
				}
				test(t, r, l, int64(others))
			})
		})
	}
}

func TestIdleTimeout(t *testing.T) {
	// One connection is a crowd.
	oneOrTwo(t, Config{MaxConns: 1}, func(t *testing.T, r *running, l *pipeListener, others int64) {
		nc := l.dial()
		ask(t, nc, "PING\n", "PONG\n")
		time.Sleep(9 * time.Minute)
		ask(t, nc, "PING\n", "PONG\n")
		time.Sleep(9 * time.Minute)
		ask(t, nc, "GET\n", "1000\n")
		within(t, "since the last request", closedAfter(t, nc), 10*time.Minute, 10*time.Minute+time.Second)

		// Bytes that make no request do not keep a connection.
		synctest.Wait()
		nc = l.dial()
		start := time.Now()
		ask(t, nc, "PING\n", "PONG\n")
		for {
			if _, err := io.WriteString(nc, "\xff\xf1"); err != nil {
				break
			}
			time.Sleep(10 * time.Second)
		}
		within(t, "trickle", time.Since(start), 10*time.Minute, 10*time.Minute+11*time.Second)

		synctest.Wait()
		if c := r.Counters(); c.ConnsIdle != 2 || c.ConnsOpen != others {
			t.Fatalf("%+v", c)
		}
	})
}

func TestWriteTimeout(t *testing.T) {
	oneOrTwo(t, Config{MaxConns: 100}, func(t *testing.T, r *running, l *pipeListener, others int64) {
		for _, request := range []string{"GET\n", "GET 10000\n", strings.Repeat("GET\n", 250)} {
			nc := l.dial()
			time.Sleep(time.Minute + 100*time.Millisecond) // off the sweeper's ticks
			if _, err := io.WriteString(nc, request); err != nil {
				t.Fatal(err)
			}
			before := r.Counters().ConnsSlow
			time.Sleep(5 * time.Second)
			if c := r.Counters(); c.ConnsOpen != others+1 || c.ConnsSlow != before {
				t.Fatalf("after 5 s: %+v", c)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if c := r.Counters(); c.ConnsOpen != others || c.ConnsSlow != before+1 {
				t.Fatalf("after 6 s: %+v", c)
			}
		}
		// Reading a little now and then is not enough.
		nc := l.dial()
		io.WriteString(nc, "GET 10000\n")
		start := time.Now()
		for {
			if _, err := nc.Read(make([]byte, 100)); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		within(t, "trickling reader", time.Since(start), 5*time.Second, 7*time.Second)
	})
}

func TestAcceptBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		serveOn(t, newTestServer(t, Config{}), l)
		const ms = time.Millisecond
		want := []time.Duration{0, 5 * ms, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1000 * ms,
			1000 * ms}
		for round, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
			for _, d := range want {
				start := time.Now()
				l.next <- errno // taken when Accept is called again
				if got := time.Since(start); got != d {
					t.Fatalf("round %d: accepted again after %v, want %v", round, got, d)
				}
				synctest.Wait()
			}
			ask(t, l.dial(), "PING\n", "PONG\n") // and the next round begins at 5 ms
			synctest.Wait()
		}
		l.next <- syscall.ECONNABORTED // the end does not wait for a back-off
	})
}

func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		s := newTestServer(t, Config{})
		done := make(chan error)
		go func() { done <- s.Serve(context.Background(), l) }()
		nc := l.dial()
		ask(t, nc, "GET\n", "1000\n")
		l.next <- syscall.EINVAL
		if err := <-done; !errors.Is(err, syscall.EINVAL) || !strings.HasPrefix(err.Error(), "accept on pipe: ") {
			t.Fatalf("got %v", err)
		}
		if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("the connection is left: %v", err)
		}
	})
}
