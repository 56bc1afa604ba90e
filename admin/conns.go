package admin

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// maxConns is how many connections are open at once: a node's descriptors are
// for those who ask for IDs.
const maxConns = 200

// conns is a listener that always has room for one more connection: a probe
// must be answered whoever else is connected. Beyond the limit it closes one
// that nothing is being answered on.
type conns struct {
	net.Listener
	most int

	mu   sync.Mutex // guards what follows, and the fields of each conn in open
	open map[*conn]struct{}
	of   map[netip.Prefix]int // how many are open, by where they come from
	turn int64
}

func newConns(l net.Listener, most int) *conns {
	return &conns{Listener: l, most: most, open: map[*conn]struct{}{}, of: map[netip.Prefix]int{}}
}

// conn is one of them.
type conn struct {
	net.Conn
	all  *conns
	from netip.Prefix
	// answering: a handler is at work. quiet is the turn at which that last ended, or
	// else at which the connection came.
	answering bool
	quiet     int64
}

func (l *conns) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, all: l, from: origin(accepted.RemoteAddr())}
	if out := l.admit(c); out != nil {
		_ = out.Conn.Close()
	}
	return c, nil
}

// admit takes a connection in, and returns the one that has to go for it, if any.
func (l *conns) admit(c *conn) (out *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	c.quiet = l.turn
	l.open[c] = struct{}{}
	l.of[c.from]++
	if len(l.open) <= l.most {
		return nil
	}
	for other := range l.open {
		if !other.answering && (out == nil || other.goesBefore(out)) {
			out = other
		}
	}
	l.forget(out)
	return out
}

// goesBefore reports whether c is closed before other: an address that has more
// connections loses one first, and of one address the longest quiet.
func (c *conn) goesBefore(other *conn) bool {
	if mine, others := c.all.of[c.from], c.all.of[other.from]; mine != others {
		return mine > others
	}
	return c.quiet < other.quiet
}

// forget is called with mu held. It does nothing for nil, nor twice.
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

// answer marks a connection that a handler is at work on.
func (c *conn) answer(working bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.turn++
	c.answering, c.quiet = working, c.all.turn
}

// connKey is what a request's context has its conn by.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the conn of a request's context.
func connOf(ctx context.Context) *conn { return ctx.Value(connKey{}).(*conn) }

// origin returns what counts as one address: of IPv6 the network, whose
// addresses one machine may have all of. What is no IP address has one origin together.
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
