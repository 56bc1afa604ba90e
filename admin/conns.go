package admin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// maxConns is the most connections that may be open at once. It keeps file
// descriptors free for clients that ask for IDs.
const maxConns = 200

// grace is how long a new connection is not closed to make room for another. Its request
// may be under way. With maxConns, grace limits the listener to 20,000 new connections a
// second.
const grace = 10 * time.Millisecond

// conns is a listener that always accepts one more connection, so that a probe is
// answered however many clients are connected. When there are more than most, it
// closes a connection on which no handler is at work.
type conns struct {
	net.Listener
	most int
	// begin is called with the first byte of each connection. An error ends the connection.
	// nil means that every first byte is right.
	begin func(c net.Conn, first byte) error

	mu   sync.Mutex // guards what follows, and the fields of each conn in open
	open map[*conn]struct{}
	of   map[netip.Prefix]int // open connections, by origin
}

func newConns(l net.Listener, most int) *conns {
	return &conns{Listener: l, most: most, open: map[*conn]struct{}{}, of: map[netip.Prefix]int{}}
}

// conn is a connection that conns accepted.
type conn struct {
	net.Conn
	all  *conns
	from netip.Prefix
	// answering is set while a handler works on a request, and answered once one has.
	answering, answered bool
	begun               bool // a byte was read; used by Read only
	// quiet is when the last handler ended. Before any has run, it is when the connection
	// was accepted.
	quiet time.Time
}

func (l *conns) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, all: l, from: origin(accepted.RemoteAddr())}
	l.admit(c)
	for {
		out, wait := l.excess()
		if out != nil {
			_ = out.Conn.Close()
		}
		if wait <= 0 {
			return c, nil
		}
		time.Sleep(wait)
	}
}

func (l *conns) admit(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.quiet = time.Now()
	l.open[c] = struct{}{}
	l.of[c.from]++
}

// excess removes and returns the connection to close if more than most are open. A
// connection is not closed within grace, nor before its first request has been read: on a
// busy processor that takes longer. Until one can be closed, excess returns nil and the
// time to wait before the next call. It returns nil and 0 if there are not too many.
func (l *conns) excess() (out *conn, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) <= l.most {
		return nil, 0
	}
	for {
		out = l.first()
		if out == nil { // all are being answered
			return nil, grace
		}
		if wait = grace - time.Since(out.quiet); wait > 0 {
			return nil, wait
		}
		if out.answered || !hasUnread(out.Conn) {
			l.forget(out)
			return out, 0
		}
		out.quiet = time.Now()
	}
}

// first returns the connection to close first, or nil if all are being answered.
func (l *conns) first() (out *conn) {
	for c := range l.open {
		if !c.answering && (out == nil || c.goesBefore(out)) {
			out = c
		}
	}
	return out
}

// goesBefore reports whether c is closed before other. The order is: connections of the
// address that has most, connections that have had an answer, longest quiet.
func (c *conn) goesBefore(other *conn) bool {
	if mine, others := c.all.of[c.from], c.all.of[other.from]; mine != others {
		return mine > others
	}
	if c.answered != other.answered {
		return c.answered
	}
	return c.quiet.Before(other.quiet)
}

// forget removes c from the counts. The caller holds mu. A second call does nothing.
func (l *conns) forget(c *conn) {
	if _, open := l.open[c]; !open {
		return
	}
	delete(l.open, c)
	if l.of[c.from]--; l.of[c.from] == 0 {
		delete(l.of, c.from)
	}
}

// Read calls conns.begin with the first byte.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.begun && c.all.begin != nil {
		c.begun = true
		if wrong := c.all.begin(c.Conn, b[0]); wrong != nil {
			return 0, wrong
		}
	}
	return n, err
}

func (c *conn) Close() error {
	c.all.mu.Lock()
	c.all.forget(c)
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
	c.answering, c.answered, c.quiet = working, true, time.Now()
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

// fromOf returns the origin of a request.
func fromOf(r *http.Request) netip.Prefix {
	if c := connOf(r.Context()); c != nil {
		return c.from
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	return origin(net.TCPAddrFromAddrPort(from))
}

// origin returns the prefix that counts as one address: an IPv4 address, or the /64
// network of an IPv6 address, because one machine may use all addresses of a /64. All
// connections that are not TCP share the zero prefix.
func origin(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	from, _ := ip.WithZone("").Prefix(bits)
	return from
}
