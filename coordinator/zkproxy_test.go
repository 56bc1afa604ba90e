package coordinator

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands between a client and a ZooKeeper: it can cut the connection,
// terminate TLS, and end the client's session behind its back.
type proxy struct {
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu       sync.Mutex // guards what follows
	cut      bool
	conns    map[net.Conn]struct{}
	greeting []byte // the latest of the server's, with the session's password
}

// newProxy listens on loopback; config is nil for plain TCP.
func newProxy(t *testing.T, target string, config *tls.Config) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	p := &proxy{ln: ln, target: target, conns: make(map[net.Conn]struct{})}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.setCut(true)
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.ln.Addr().String() }

// setCut ends all connections and every new one, or stops doing so.
func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for c := range p.conns {
		if cut {
			_ = c.Close()
		}
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	if p.cut {
		p.mu.Unlock()
		return
	}
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, client)
		delete(p.conns, server)
	}()

	p.wg.Go(func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	})
	greeting := make([]byte, 4+minGreeting)
	if _, err := io.ReadFull(server, greeting); err != nil {
		return
	}
	p.mu.Lock()
	p.greeting = greeting
	p.mu.Unlock()
	if _, err := client.Write(greeting); err != nil {
		return
	}
	_, _ = io.Copy(client, server)
}

// endSession makes the server close the client's session, as it does one that
// has expired: with the password in the greeting anybody can take it over.
func (p *proxy) endSession(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	g := p.greeting
	p.mu.Unlock()
	if g == nil {
		t.Fatal("the client has no session")
	}
	conn, err := net.Dial("tcp", p.target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))

	be := binary.BigEndian
	body := be.AppendUint32(nil, 0) // version
	body = be.AppendUint64(body, 0) // last zxid
	body = append(body, g[8:12]...) // timeout
	body = append(body, g[12:]...)  // session id, password
	if _, err := conn.Write(append(be.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		t.Fatal(err)
	}
	if err := readFrame(conn); err != nil {
		t.Fatal(err)
	}
	closeRequest := be.AppendUint32(be.AppendUint32(be.AppendUint32(nil, 8), 1), 0xfffffff5) // xid 1, -11
	if _, err := conn.Write(closeRequest); err != nil {
		t.Fatal(err)
	}
	if err := readFrame(conn); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func readFrame(conn net.Conn) error {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:])))
	return err
}

// greet is what a ZooKeeper answers to a client first.
func greet(session uint64, timeout uint32) []byte {
	be := binary.BigEndian
	body := be.AppendUint32(nil, 0)
	body = be.AppendUint32(body, timeout)
	body = be.AppendUint64(body, session)
	body = be.AppendUint32(body, 16)
	body = append(body, make([]byte, 16)...)
	body = append(body, 0)
	return append(be.AppendUint32(nil, uint32(len(body))), body...)
}

// fakeServer answers every connection by what serve does with it.
func fakeServer(t *testing.T, serve func(c conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln.Addr().String()
}

type conn = net.Conn

// swallow reads what comes and never answers.
func swallow(c conn) { _, _ = io.Copy(io.Discard, c) }
