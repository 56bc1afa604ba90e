package lineproto

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// serveTLS serves cfg by TLS until the test ends.
func serveTLS(t *testing.T, cfg Config) (*running, *tls.Config) {
	t.Helper()
	ca := certtest.NewCA(t, "test")
	pair := ca.Pair("server", time.Now().Add(time.Hour)).TLS(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := serveOn(t, newTestServer(t, cfg), TLS(l, &tls.Config{Certificates: []tls.Certificate{pair}}))
	return r, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
}

func dialTLS(t *testing.T, addr string, config *tls.Config) *tls.Conn {
	t.Helper()
	nc, err := tls.Dial("tcp", addr, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	return nc
}

// TestPlainClientOfTLS: a client without TLS is told to use it, and other clients are
// served.
func TestPlainClientOfTLS(t *testing.T) {
	r, config := serveTLS(t, Config{})
	for _, in := range []string{"GET\n", "G", "*1\r\n$3\r\nGET\r\n", "\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		c := r.dial(t)
		c.send(in)
		c.want("-ERR this port requires TLS. Connect with TLS\r")
		c.wantEOF()
	}
	proxied := r.dial(t)
	proxied.send(proxyV2)
	proxied.want(strings.ReplaceAll(noProxy, "\n", "\r"))
	r.dial(t).Close() // a probe
	ask(t, dialTLS(t, r.addr, config), "GET\n", "1000\n")
	r.stop()
	if c := r.Counters(); c.ConnsBadTLS != 6 || c.IDs != 1 || c.ConnsOpen != 0 {
		t.Errorf("%+v", c)
	}
}

// TestTLSHandshakeTimeout: a client that does not finish its handshake delays nobody.
// It keeps its place for FirstByteTimeout, not IdleTimeout.
func TestTLSHandshakeTimeout(t *testing.T) {
	r, config := serveTLS(t, Config{FirstByteTimeout: time.Second, MaxConns: 20})
	plain := serveOn(t, r.Server, wire{network: "unix"}.listen(t)).dial(t) // is there first, at another listener
	plain.send("PING\n")
	plain.want("PONG")
	var slow []*client
	for range 5 {
		slow = append(slow, r.dial(t)) // says nothing
		half := r.dial(t)
		half.send("\x16\x03\x01\x02\x00\x01") // begins a hello
		slow = append(slow, half)
	}
	nc := dialTLS(t, r.addr, config)
	ask(t, nc, "GET\n", "1000\n")
	for _, c := range slow {
		c.wantEOF()
	}
	if c := r.Counters(); c.ConnsIdle != 10 {
		t.Errorf("%+v", c)
	}
	ask(t, nc, "GET\n", "1001\n") // one that has spoken has IdleTimeout
}

// TestTLSBusy: a connection over MaxConns is told so over TLS.
func TestTLSBusy(t *testing.T) {
	r, config := serveTLS(t, Config{MaxConns: 1})
	nc := dialTLS(t, r.addr, config)
	ask(t, nc, "GET\n", "1000\n")
	over := dialTLS(t, r.addr, config)
	if b, err := io.ReadAll(over); string(b) != "-BUSY too many connections limit=1\r\n" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	ask(t, nc, "GET\n", "1001\n")
}

// TestTLSDrain: received requests are answered and connections end in an orderly way. A
// client within its handshake or one that does not read delays the end only a little.
func TestTLSDrain(t *testing.T) {
	t.Parallel()
	b, reached, release := dry()
	r, config := serveTLS(t, Config{Backend: b, DrainTimeout: time.Second})
	asking, idle, deaf := dialTLS(t, r.addr, config), dialTLS(t, r.addr, config), dialTLS(t, r.addr, config)
	r.dial(t).send("\x16")
	ask(t, idle, "PING\n", "PONG\n")
	if _, err := io.WriteString(asking, "GET\n"); err != nil {
		t.Fatal(err)
	}
	<-reached
	go func() { // until it is cut
		for {
			if _, err := io.WriteString(deaf, strings.Repeat("HELP\n", 1000)); err != nil {
				return
			}
		}
	}()
	stopped := make(chan error, 1)
	start := time.Now()
	go func() { stopped <- r.stop() }()
	if b, err := io.ReadAll(idle); len(b) > 0 || err != nil {
		t.Errorf("idle: got %q, %v", b, err)
	}
	release()
	if b, err := io.ReadAll(asking); string(b) != "1000\n" || err != nil {
		t.Errorf("asking: got %q, %v", b, err)
	}
	asking.Close()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("it took %s", d)
	}
}
