package client

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/testkit/certtest"
)

// serve calls f for each connection, until the test ends. It returns the address.
func serve(t *testing.T, l net.Listener, f func(net.Conn)) string {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				f(nc)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Bytes that are not a valid reply give no ID, and another node is asked.
func TestInvalidReplyFailsOver(t *testing.T) {
	_, addrs := nodes(t, 2)
	for name, reply := range map[string]string{
		"nothing":               "",
		"half a line":           "12",
		"a text":                "hello\n",
		"an empty line":         "\n5\n",
		"nought":                "0\n5\n",
		"leading zero":          "05\n6\n",
		"sign":                  "+5\n6\n",
		"too great":             "9223372036854775808\n5\n",
		"twenty digits":         "10000000000000000000\n5\n",
		"a dash":                "-\n",
		"one of two":            "5\n",
		"error after an ID":     "5\n-NOTREADY\n",
		"text after an ID":      "5\nhello\n",
		"a line without an end": strings.Repeat("1", 10_000),
		"HTTP":                  "HTTP/1.1 400 Bad Request\r\n\r\n",
	} {
		bad := serve(t, listen(t), func(nc net.Conn) {
			if _, err := bufio.NewReader(nc).ReadString('\n'); err == nil {
				io.WriteString(nc, reply)
			}
		})
		c := open(t, Config{Addrs: []string{bad, addrs[1]}})
		ids, err := c.Take(by(t, long), 2)
		if err != nil || of(ids[0]) != 1 || of(ids[1]) != 1 {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
		c.Close()
	}
}

// A surplus reply is not taken for the reply to the next request.
func TestSurplusReplyIsDiscarded(t *testing.T) {
	addr := serve(t, listen(t), func(nc net.Conn) {
		in := bufio.NewReader(nc)
		for {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			io.WriteString(nc, "5\r\n6\r\n")
		}
	})
	c := open(t, Config{Addrs: []string{addr}})
	for range 3 {
		if id, err := c.Next(by(t, long)); err != nil || id != 5 {
			t.Errorf("%d, %v", id, err)
		}
	}
}

// A Take of many requests does not deadlock on full buffers. It may take longer than
// Timeout, which applies to each window of requests.
func TestLongTake(t *testing.T) {
	servers, addrs := nodes(t, 1)
	servers[0].Delay(time.Millisecond)
	c := open(t, Config{Addrs: addrs, MaxBatch: 1, Timeout: 200 * time.Millisecond})
	ids, err := c.Take(by(t, long), 500)
	if err != nil {
		t.Fatal(err)
	}
	unique(t, ids)
	c2 := open(t, Config{Addrs: addrs})
	if ids, err = c2.Take(by(t, long), 100_000); err != nil {
		t.Fatal(err)
	}
	unique(t, ids)
}

// Config.TLS is used on TCP, and not on unix sockets.
func TestTLS(t *testing.T) {
	servers, addrs := nodes(t, 1)
	// through forwards connections of l to the node.
	through := func(l net.Listener) string {
		return serve(t, l, func(nc net.Conn) {
			node, err := net.Dial("tcp", addrs[0])
			if err != nil {
				return
			}
			var wg sync.WaitGroup
			wg.Go(func() { io.Copy(nc, node); nc.Close() })
			io.Copy(node, nc)
			node.Close()
			wg.Wait()
		})
	}
	ca := certtest.NewCA(t, "ca")
	pair := ca.Pair("node", time.Now().Add(time.Hour))
	secure := through(tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{pair.TLS(t)}}))
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	socket := through(l)
	good := &tls.Config{RootCAs: ca.Pool()}
	for _, addr := range []string{secure, socket} {
		c := open(t, Config{Addrs: []string{addr}, TLS: good})
		if _, err := c.Next(by(t, long)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		c.Close()
	}
	other := open(t, Config{Addrs: []string{secure}, TLS: &tls.Config{RootCAs: certtest.NewCA(t, "other").Pool()},
		Patience: 300 * time.Millisecond})
	_, err = other.Next(t.Context())
	var unknown *tls.CertificateVerificationError
	if !errors.Is(err, ids.ErrUnavailable) || !errors.As(err, &unknown) {
		t.Errorf("of another authority: %v", err)
	}
	if n := servers[0].Requests(); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// A handshake goes on after the call that needed it has failed, and serves a later call.
func TestHandshakeContinuesAfterItsCallFailed(t *testing.T) {
	slow := func(nc net.Conn) {
		in := bufio.NewReader(nc)
		for _, reply := range []string{"OK\n", "7\n"} { // to AUTH, and to GET
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			if reply == "OK\n" {
				time.Sleep(200 * time.Millisecond)
			}
			io.WriteString(nc, reply)
		}
	}
	c := open(t, Config{Addrs: []string{serve(t, listen(t), slow), serve(t, listen(t), slow)}, Token: "secret",
		Timeout: long})
	began := time.Now()
	until(t, "an ID", func() bool {
		_, err := c.Next(by(t, 30*time.Millisecond))
		return err == nil
	})
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("%v: that was no test", took)
	}
}
