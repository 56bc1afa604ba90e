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

// conns is a listener that always accepts one more connection, so that a probe is
// answered however many clients are connected. When there are more than most, it
// closes a connection on which no handler is at work.
type conns struct {
	net.Listener
	most int

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
	// answering is set while a handler works on a request.
	answering bool
	// quiet is when the last handler ended. Before any has run, it is when the connection
	// was accepted.
	quiet time.Time
}

func (l *conns) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, all: l, from: origin(accepted.RemoteAddr()), quiet: time.Now()}
	if out := l.admit(c); out != nil {
		_ = out.Conn.Close()
	}
	return c, nil
}

// admit adds c. It removes and returns the connection to close if more than most are open: the one that
// has been quiet for longest of the address that has most. It is nil if all are being answered.
func (l *conns) admit(c *conn) (out *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	l.of[c.from]++
	if len(l.open) <= l.most {
		return nil
	}
	for other := range l.open {
		if other != c && !other.answering && (out == nil || other.goesBefore(out)) {
			out = other
		}
	}
	if out != nil {
		l.forget(out)
	}
	return out
}

// goesBefore reports whether c is closed before other. The caller holds mu.
func (c *conn) goesBefore(other *conn) bool {
	if mine, others := c.all.of[c.from], c.all.of[other.from]; mine != others {
		return mine > others
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
