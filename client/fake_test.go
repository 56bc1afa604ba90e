package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// FakeNode is a node without a cluster. Its methods may be called at any time by any goroutine.
type FakeNode struct {
	// Addr is the address of the node, for client.Config.Addrs. Stop and Start do not
	// change it.
	Addr string

	proto *lineproto.Server // one for all Starts, so that its counts go on

	mu      sync.Mutex // guards what follows
	last    worker.ID
	next    map[string]int64         // of sequences: the next value, by name. 1 for other names
	keyed   map[string]int64         // values by sequence and key
	shown   func(name string) string // what SEQ says besides the name
	hold    func(name string) error  // called before a value is given
	looks   int                      // requests for it
	refusal *ids.ReplyError
	refuses int // how many more requests to refuse; -1: all
	delay   time.Duration
	cutAt   int // bytes of replies on a connection before it is cut; -1: no cut
	stop    func()
}

// NewFakeNode starts a node on a free port of the loopback interface. It panics if it cannot
// listen. Close must be called.
func NewFakeNode() *FakeNode { return NewFakeNodeWithToken("") }

// NewFakeNodeWithToken starts a node that requires a token, unless token is empty. Otherwise it
// is like NewFakeNode.
func NewFakeNodeWithToken(token string) *FakeNode {
	s := &FakeNode{cutAt: -1, Addr: "127.0.0.1:0", next: make(map[string]int64), keyed: make(map[string]int64)}
	cfg := lineproto.Config{Backend: (*fakeBackend)(s), Sequences: (*fakeSequences)(s), Goroutines: true,
		DrainTimeout: 20 * time.Millisecond}
	if token != "" {
		cfg.Authenticate = func(sent []byte) (*sequence.Rights, bool) { return nil, string(sent) == token }
	}
	proto, err := lineproto.New(cfg)
	if err != nil {
		panic(fmt.Sprintf("fake node: %v", err))
	}
	s.proto = proto
	s.Start()
	return s
}

// SetLast makes the next ID the one after last.
func (s *FakeNode) SetLast(last worker.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = last
}

// SetNext makes v the next value of a sequence. Every name is a sequence of this node, from 1 on, and may be asked with
// keys.
func (s *FakeNode) SetNext(name string, v int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[name] = v
}

// Refuse makes requests for IDs and values fail with the error -CODE text, until Serve is called.
func (s *FakeNode) Refuse(code ids.Code, text string) { s.refuse(code, text, -1) }

// RefuseNext is like Refuse, but only for the next n requests for IDs.
func (s *FakeNode) RefuseNext(n int, code ids.Code, text string) { s.refuse(code, text, n) }

func (s *FakeNode) refuse(code ids.Code, text string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal, s.refuses = replies.New(code, text), n
}

// Delay makes every request for IDs, not for values, take d longer, until Serve is called.
func (s *FakeNode) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// CutReplies makes the node cut each connection after n more bytes of replies, until Serve is
// called.
func (s *FakeNode) CutReplies(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutAt = n
}

// Serve cancels Refuse, RefuseNext, Delay and CutReplies.
func (s *FakeNode) Serve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses, s.delay, s.cutAt = 0, 0, -1
}

// IDs returns how many IDs the node has answered with, whether clients read them or not.
func (s *FakeNode) IDs() int64 { return s.proto.Counters().IDs }

// Requests returns how many requests for IDs there were: GET and GET n, refused ones too.
func (s *FakeNode) Requests() int64 {
	var n int64
	for _, r := range s.proto.Counters().Requests {
		if r.Command == "GET" {
			n += r.N
		}
	}
	return n
}

// Conns returns how many connections there have been.
func (s *FakeNode) Conns() int64 { return s.proto.Counters().ConnsTotal }

// Start makes the node listen again after Stop. It does nothing if the node is running.
func (s *FakeNode) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return
	}
	l, err := net.Listen("tcp", s.Addr)
	if err != nil {
		panic(fmt.Sprintf("fake node: %v", err))
	}
	s.Addr = l.Addr().String()
	cut := &fakeListener{Listener: l, s: s, conns: make(map[net.Conn]bool)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.proto.Serve(ctx, cut)
	}()
	s.stop = func() {
		cut.closeAll()
		cancel()
		<-done
	}
}

// Stop acts like kill -9: connections are reset, and new ones refused.
func (s *FakeNode) Stop() {
	s.mu.Lock()
	stop := s.stop
	s.stop = nil
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Close stops the node. It may be called more than once.
func (s *FakeNode) Close() { s.Stop() }

// fakeBackend is the lineproto.Backend of a Node.
type fakeBackend FakeNode

var _ lineproto.Backend = (*fakeBackend)(nil)

func (b *fakeBackend) Reserve(ctx context.Context, n int) (worker.Run, error) {
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

// Try is not used: the server has no event loop.
func (b *fakeBackend) Try(n int, _ time.Duration) (run worker.Run, p worker.Pause, err error) {
	run, err = b.Reserve(context.Background(), n)
	return run, p, err
}

// refused returns the error for a request, or nil. If counts is set, the request is one of
// those that RefuseNext counts. The caller holds b.mu.
func (b *fakeBackend) refused(counts bool) error {
	if b.refuses == 0 {
		return nil
	}
	if counts && b.refuses > 0 {
		b.refuses--
	}
	return b.refusal
}

func (b *fakeBackend) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused(false)
}

func (b *fakeBackend) Decode(id worker.ID) (string, error) { return fmt.Sprintf("id=%d", id), nil }
func (b *fakeBackend) Worker() string                      { return "worker=0 name=test state=serving" }
func (b *fakeBackend) Ceiling() int64                      { return 0 }
func (b *fakeBackend) Waits() int64                        { return 0 }
func (b *fakeBackend) Stats() [][2]string                  { return nil }
func (b *fakeBackend) Now() time.Time                      { return time.Now() }
func (b *fakeBackend) Version() string                     { return "test" }

// fakeListener makes connections that can be cut.
type fakeListener struct {
	net.Listener
	s     *FakeNode
	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

func (l *fakeListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &fakeConn{Conn: nc, l: l}
	l.conns[c] = true
	return c, nil
}

func (l *fakeListener) closeAll() {
	_ = l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		reset(c.(*fakeConn).Conn)
	}
}

// reset closes a connection with a reset, as happens when its process is killed while data is
// unread.
func reset(nc net.Conn) {
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = nc.Close()
}

type fakeConn struct {
	net.Conn
	l    *fakeListener
	sent int // since CutReplies
}

var errFakeCut = errors.New("fake node: cut")

func (c *fakeConn) Write(b []byte) (int, error) {
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
		err = errFakeCut
	}
	return n, err
}

func (c *fakeConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}
