// Package clienttest has a node for tests of programs that use package client:
// the line protocol as a real node speaks it, on a loopback port, with IDs from 1
// on. It can be told to refuse, to be slow, to cut connections and to go away.
package clienttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/worker"
)

// Server is a node without a cluster. All of its methods may be called at any
// time, by any goroutine.
type Server struct {
	// Addr is where it listens, for client.Config.Addrs. It stays the same over
	// Stop and Start.
	Addr string

	token string

	mu      sync.Mutex // guards what follows
	last    worker.ID
	refusal *lineproto.Error
	refuses int // how many times more; -1: until told otherwise
	delay   time.Duration
	cutAt   int // bytes of a reply after which its connection is cut, -1 for none
	proto   *lineproto.Server
	before  lineproto.Counters // of earlier Starts
	stop    func()
}

// NewServer starts one on a free port of the loopback interface. It panics
// where that cannot be had. Close has to be called.
func NewServer() *Server { return NewServerWithToken("") }

// NewServerWithToken starts one that asks for a token, unless that is empty.
func NewServerWithToken(token string) *Server {
	s := &Server{token: token, cutAt: -1, Addr: "127.0.0.1:0"}
	s.Start()
	return s
}

// SetLast makes the next ID the one after last.
func (s *Server) SetLast(last worker.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = last
}

// Refuse has requests for IDs answered with an error, -CODE text, until Serve is
// called. The codes are those of the protocol: NOTREADY, CLOCK, FENCED and so on.
func (s *Server) Refuse(code, text string) { s.refuse(code, text, -1) }

// RefuseNext does so for the next n requests.
func (s *Server) RefuseNext(n int, code, text string) { s.refuse(code, text, n) }

func (s *Server) refuse(code, text string, n int) {
	e, err := protoError(code, text)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal, s.refuses = e, n
}

// Delay has every request for IDs take d longer.
func (s *Server) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// CutReplies has connections cut when n more bytes of replies have been sent on
// them, until Serve is called. Connections that are open count from now on.
func (s *Server) CutReplies(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutAt = n
}

// Serve ends what Refuse, Delay and CutReplies began.
func (s *Server) Serve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses, s.delay, s.cutAt = 0, 0, -1
}

// IDs is how many IDs it has answered with, read by their client or not.
func (s *Server) IDs() int64 { return s.counters().IDs }

// Requests is how many requests there were for IDs: GET and GET n.
func (s *Server) Requests() int64 {
	var n int64
	for _, r := range s.counters().Requests {
		if r.Command == "GET" {
			n += r.N
		}
	}
	return n
}

// Conns is how many connections there have been.
func (s *Server) Conns() int64 { return s.counters().ConnsTotal }

// counters are those of this start and of those before it.
func (s *Server) counters() lineproto.Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.before
	if s.proto != nil {
		c = sum(c, s.proto.Counters())
	}
	return c
}

func sum(a, b lineproto.Counters) lineproto.Counters {
	b.IDs += a.IDs
	b.ConnsTotal += a.ConnsTotal
	b.Requests = append(b.Requests, a.Requests...)
	return b
}

// Start lets it listen again after Stop.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return
	}
	l, err := net.Listen("tcp", s.Addr)
	if err != nil {
		panic(fmt.Sprintf("clienttest: %v", err))
	}
	s.Addr = l.Addr().String()
	cfg := lineproto.Config{Backend: (*backend)(s), Engine: lineproto.Goroutines, DrainTimeout: 20 * time.Millisecond}
	if s.token != "" {
		cfg.Authenticate = func(token []byte) bool { return string(token) == s.token }
	}
	proto, err := lineproto.New(cfg)
	if err != nil {
		panic(fmt.Sprintf("clienttest: %v", err))
	}
	s.proto = proto
	cut := &listener{Listener: l, s: s, conns: make(map[net.Conn]bool)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = proto.Serve(ctx, cut)
	}()
	s.stop = func() {
		cut.closeAll()
		cancel()
		<-done
	}
}

// Stop is as kill -9: its connections are cut, and new ones refused.
func (s *Server) Stop() {
	s.mu.Lock()
	stop := s.stop
	s.stop = nil
	s.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = sum(s.before, s.proto.Counters())
	s.proto = nil
}

// Close ends it. It may be called again.
func (s *Server) Close() { s.Stop() }

// backend is what lineproto sees of a Server.
type backend Server

var _ lineproto.Backend = (*backend)(nil)

func (b *backend) Reserve(ctx context.Context, n int) (worker.Run, error) {
	b.mu.Lock()
	delay := b.delay
	b.mu.Unlock()
	if delay > 0 {
		select {
		case <-ctx.Done():
			return worker.Run{}, ctx.Err()
		case <-time.After(delay):
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refused(true); err != nil {
		return worker.Run{}, err
	}
	first := b.last + 1
	b.last += worker.ID(n)
	return worker.Run{First: first, Step: 1, Len: n}, nil
}

// refused is the error that a request gets. b.mu is held.
func (b *backend) refused(counts bool) error {
	if b.refuses == 0 {
		return nil
	}
	if counts && b.refuses > 0 {
		b.refuses--
	}
	return b.refusal
}

func (b *backend) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused(false)
}

func (b *backend) Decode(id worker.ID) (string, error) { return fmt.Sprintf("id=%d", id), nil }
func (b *backend) Worker() string                      { return "worker=0 term=1 node=test name=test state=serving" }
func (b *backend) Ceiling() int64                      { return 0 }
func (b *backend) Waits() int64                        { return 0 }
func (b *backend) Stats() []lineproto.Stat             { return nil }
func (b *backend) Now() time.Time                      { return time.Now() }
func (b *backend) Version() string                     { return "test" }

func protoError(code, text string) (*lineproto.Error, error) {
	for c := lineproto.ERR; c <= lineproto.BUSY; c++ {
		if c.String() == strings.TrimPrefix(code, "-") {
			return &lineproto.Error{Code: c, Text: text}, nil
		}
	}
	return nil, fmt.Errorf("clienttest: the protocol has no error %q", code)
}

// listener makes connections that can be cut.
type listener struct {
	net.Listener
	s     *Server
	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &conn{Conn: nc, l: l}
	l.conns[c] = true
	return c, nil
}

func (l *listener) closeAll() {
	_ = l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		cut(c.(*conn).Conn)
	}
}

// cut closes a connection as the end of its process does, or worse: with a reset.
func cut(nc net.Conn) {
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = nc.Close()
}

type conn struct {
	net.Conn
	l    *listener
	sent int // since CutReplies
}

var errCut = errors.New("clienttest: cut")

func (c *conn) Write(b []byte) (int, error) {
	c.l.s.mu.Lock()
	limit := c.l.s.cutAt
	c.l.s.mu.Unlock()
	if limit < 0 {
		c.sent = 0
		return c.Conn.Write(b)
	}
	n, err := c.Conn.Write(b[:min(len(b), max(limit-c.sent, 0))])
	c.sent += n
	if err == nil && n < len(b) {
		_ = c.Conn.Close()
		err = errCut
	}
	return n, err
}

func (c *conn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}
