package lineproto

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestDrainIdle: idle connections end at once, unfinished lines unanswered.
func TestDrainIdle(t *testing.T) {
	r := serveTCP(t, Config{DrainTimeout: 20 * time.Second})
	a, b := dial(t, r.addr), dial(t, r.addr)
	a.send("GET\nGET")
	a.want("1000")
	b.send("PING\n")
	b.want("PONG")
	start := time.Now()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Fatalf("took %v", d)
	}
	a.wantEOF()
	b.wantEOF()
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Fatal("still listening")
	}
	if c := r.Counters(); c.ConnsOpen != 0 || c.ConnsIdle != 0 {
		t.Fatalf("%+v", c)
	}
}

// blocking is a fakeBackend whose first Reserve waits to be released or for
// its context.
func blocking() (b *fakeBackend, reached, release chan struct{}) {
	reached, release = make(chan struct{}, 1), make(chan struct{})
	b = &fakeBackend{reserve: func(ctx context.Context, _ int) error {
		select {
		case reached <- struct{}{}:
		default:
		}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	return b, reached, release
}

// TestDrainAnswers: what has been received is answered, in the midst of which
// the server is told to end.
func TestDrainAnswers(t *testing.T) {
	b, reached, release := blocking()
	r := serveTCP(t, Config{Backend: b, DrainTimeout: 20 * time.Second})
	c, idle := dial(t, r.addr), dial(t, r.addr)
	idle.send("PING\n")
	idle.want("PONG")
	const n = 250 // one read's worth
	c.send(strings.Repeat("GET\n", n))
	<-reached
	r.cancel()
	idle.wantEOF() // draining has reached the connections
	close(release)
	for i := range n {
		c.want(strconv.Itoa(1000 + i))
	}
	c.wantEOF()
	c.Close() // or it is waited for, up to lingerTime
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// TestDrainTimeout: neither a Backend that does not answer nor a client that
// does not read keeps Serve from returning.
func TestDrainTimeout(t *testing.T) {
	b, reached, _ := blocking()
	r := serveTCP(t, Config{Backend: b, DrainTimeout: 100 * time.Millisecond})
	c := dial(t, r.addr)
	c.send("GET\n")
	<-reached
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	l := newPipeListener()
	r = serveOn(t, newTestServer(t, Config{DrainTimeout: 100 * time.Millisecond}), l)
	nc := l.dial()
	defer nc.Close()
	nc.Write([]byte("GET\n")) // and does not read
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if c := r.Counters(); c.ConnsOpen != 0 {
		t.Fatalf("%+v", c)
	}
}

// TestDrainUnderLoad: every client that keeps asking sees whole replies in
// order and then an orderly end, never a reset that takes replies with it.
func TestDrainUnderLoad(t *testing.T) {
	r := serveTCP(t, Config{})
	const clients = 8
	errs, started := make(chan error, clients), make(chan struct{}, clients)
	for range clients {
		c := dial(t, r.addr)
		go func() {
			defer c.Close()
			batch := strings.Repeat("GET\n", 10)
			for asked := 0; ; asked++ {
				if _, err := c.Write([]byte(batch)); err != nil {
					errs <- err
					return
				}
				for i := range 10 {
					line, err := c.r.ReadString('\n')
					if err != nil {
						if line != "" || i != 0 {
							err = errors.New("a batch was answered in part")
						}
						errs <- err
						return
					}
				}
				if asked == 0 {
					started <- struct{}{}
				}
			}
		}()
	}
	for range clients {
		<-started
	}
	r.cancel()
	for range clients {
		if err := <-errs; err == nil || err.Error() != "EOF" {
			t.Errorf("got %v, want EOF", err)
		}
	}
	r.stop()
}

// TestListenerClosed: Serve says so, after its connections have ended.
func TestListenerClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t, Config{})
	done := make(chan error)
	go func() { done <- s.Serve(t.Context(), l) }()
	c := dial(t, l.Addr().String())
	c.send("GET\n")
	c.want("1000")
	l.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	c.wantEOF()
}
