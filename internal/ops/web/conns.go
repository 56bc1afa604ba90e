package web

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// maxConns is the most connections that may be open at once. It keeps file
// descriptors free for clients that ask for IDs.
const maxConns = 200

// conns is a listener that always accepts one more connection, so that a probe is
// answered however many clients are connected. When there are more than most, it
// closes the connection that has been quiet for longest, on which no handler is at work.
type conns struct {
	net.Listener
	most int

	mu   sync.Mutex // guards open, and the fields of each conn in it
	open map[*conn]struct{}
}

func newConns(l net.Listener, most int) *conns {
	return &conns{Listener: l, most: most, open: map[*conn]struct{}{}}
}

// conn is a connection that conns accepted.
type conn struct {
	net.Conn
	all *conns
	// answering is set while a handler works on a request.
	answering bool
	// quiet is the time at which the last handler ended, or, before any has run, at which the connection was accepted.
	quiet time.Time
}

func (l *conns) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, all: l, quiet: time.Now()}
	if out := l.admit(c); out != nil {
		_ = out.Conn.Close()
	}
	return c, nil
}

// admit adds c. It removes and returns the connection to close if more than most are open. It is nil if all others
// are being answered.
func (l *conns) admit(c *conn) (out *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	if len(l.open) <= l.most {
		return nil
	}
	for other := range l.open {
		if other != c && !other.answering && (out == nil || other.quiet.Before(out.quiet)) {
			out = other
		}
	}
	delete(l.open, out)
	return out
}

func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// answer marks the beginning and the end of a handler's work. A nil conn is one that another server
// accepted, which closes it by its own rules.
func (c *conn) answer(working bool) {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.answering, c.quiet = working, time.Now()
}

// connKey is the key of the conn in a request's context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the conn of a request's context. It is nil if another server accepted it: see
// Server.Handler.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
