package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// dialled is a connection on which a test writes HTTP itself.
type dialled struct {
	t *testing.T
	net.Conn
	replies *bufio.Reader
}

func dial(t *testing.T, addr string) *dialled {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return &dialled{t, c, bufio.NewReader(c)}
}

func (d *dialled) say(text string) *dialled {
	d.t.Helper()
	if _, err := io.WriteString(d, text); err != nil {
		d.t.Fatal(err)
	}
	return d
}

// ask sends a request, and returns the answer with its body unread.
func (d *dialled) ask(request string) *http.Response {
	d.t.Helper()
	d.say(request)
	res, err := http.ReadResponse(d.replies, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return res
}

const (
	livez = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
	oneID = "GET /v1/ids HTTP/1.1\r\nHost: localhost\r\n\r\n"
)

// Probes are answered while many clients hold connections open in various ways.
func TestProbesAreAnsweredUnderAttack(t *testing.T) {
	for _, row := range []struct{ name, sends string }{
		{"silent connections", ""},
		{"idle connections", livez},
		{"half requests", "GET /livez HT"},
		{"requests without their body", "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr, _ := start(t, Config{Authenticate: func([]byte) (*sequence.Rights, bool) { return nil, true }})
			for range 2 * maxConns {
				dial(t, addr).say(row.sends)
			}
			for range 20 {
				c := dial(t, addr)
				began := time.Now()
				if res := c.ask(livez); res.StatusCode != 200 {
					t.Fatal(res.Status)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Error(took)
				}
				c.Close()
			}
		})
	}
}

// A connection on which a handler is at work is not closed to make room.
func TestBusyConnectionsStay(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	addr, _ := start(t, Config{Reserve: func(context.Context, int) (worker.Run, error) {
		close(inside)
		<-release
		return worker.Run{First: 1000, Step: 1, Len: 1}, nil
	}})
	busy := dial(t, addr).say(oneID)
	<-inside
	for range 2 * maxConns {
		dial(t, addr)
	}
	if res := dial(t, addr).ask(livez); res.StatusCode != 200 {
		t.Error(res.Status)
	}
	close(release)
	if res := busy.ask(""); res.StatusCode != 200 {
		t.Error(res.Status)
	}
}

// Requests beyond the limits wait, and are then refused. Probes are not limited.
func TestRequestsOverTheLimitGetBusy(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	addr, _ := start(t, Config{Reserve: func(context.Context, int) (worker.Run, error) {
		inside <- struct{}{}
		<-release
		return worker.Run{First: 1000, Step: 1, Len: 1}, nil
	}})
	var asked []*dialled
	for range maxAnswers {
		asked = append(asked, dial(t, addr).say(oneID))
		<-inside
	}
	if res := dial(t, addr).ask(oneID); res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" {
		t.Errorf("one more: %s %v", res.Status, res.Header)
	}
	for _, path := range []string{"/livez", "/readyz", "/v1/workers"} { // /v1/workers has its own places
		if res := dial(t, addr).ask("GET " + path +
			" HTTP/1.1\r\nHost: localhost\r\n\r\n"); res.StatusCode != 200 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	close(release)
	for _, c := range asked {
		if res := c.ask(""); res.StatusCode != 200 {
			t.Error(res.Status)
		}
	}
	go func() { <-inside }()
	if res := dial(t, addr).ask(oneID); res.StatusCode != 200 {
		t.Errorf("afterwards: %s", res.Status)
	}
}

func TestLongestQuietConnectionIsClosed(t *testing.T) {
	l := newConns(nil, 2)
	begin := time.Now()
	add := func() (c, out *conn) {
		begin = begin.Add(time.Millisecond)
		c = &conn{all: l, quiet: begin}
		return c, l.admit(c)
	}
	busy, _ := add()
	busy.answer(true)
	idle, _ := add()
	last, out := add()
	if out != idle {
		t.Errorf("%p, want %p: busy is being answered", out, idle)
	}
	last.answer(true)
	if _, out = add(); out != nil || len(l.open) != 3 {
		t.Errorf("%+v, %d are open: all are being answered", out, len(l.open))
	}
}
