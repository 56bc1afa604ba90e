package lineproto

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
)

// TLS makes of a listener one whose connections speak TLS. The handshake is
// done where a connection is served, so a client that is slow at it keeps
// nobody waiting, and has FirstByteTimeout for it.
func TLS(l net.Listener, config *tls.Config) net.Listener { return tlsListener{l, config} }

type tlsListener struct {
	net.Listener
	config *tls.Config
}

func (l tlsListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&hello{Conn: nc}, l.config), nil
}

// errNotTLS is a first byte that no TLS client sends.
var errNotTLS = errors.New("this client does not speak TLS")

// hello is the socket under a TLS connection. It looks at the first byte, to
// tell a client that speaks plainly what it should do: TLS itself would wait
// for a header of five, which GET and a line feed are not.
type hello struct {
	net.Conn
	seen bool
}

func (h *hello) Read(b []byte) (int, error) {
	const handshake = 22 // the type of record that a client begins with
	n, err := h.Conn.Read(b)
	if n > 0 && !h.seen {
		h.seen = true
		if b[0] != handshake {
			return 0, errNotTLS
		}
	}
	return n, err
}

// socket is what is under a connection, which is itself unless it speaks TLS.
func socket(nc net.Conn) net.Conn {
	if t, ok := nc.(*tls.Conn); ok {
		if h, ok := t.NetConn().(*hello); ok {
			return h.Conn
		}
		return t.NetConn()
	}
	return nc
}

// handshake begins a TLS connection, and reports whether that went well. then
// is how many ticks the client has afterwards for its first request.
func (c *conn) handshake(ctx context.Context, then int64) bool {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return true
	}
	c.due.Store(c.e.tick.Load() + c.e.firstByte)
	err := t.HandshakeContext(ctx)
	if err == nil {
		c.begin(then)
		return true
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		if !c.e.draining.Load() {
			c.e.srv.counters.idle.Inc()
		}
	case !errors.Is(err, io.EOF): // which is a probe that only connects
		c.e.srv.counters.badTLS.Inc()
		c.e.srv.cfg.Logger.Debug("no TLS with a client", "peer", c.nc.RemoteAddr().String(), "error", err)
	}
	if errors.Is(err, errNotTLS) {
		plainly := socket(c.nc)
		if _, err := plainly.Write(linesCRLF.fail(nil, &Error{ERR, "this port speaks TLS"})); err == nil {
			c.lingerOn(plainly, noDeadline)
		}
	}
	return false
}

// parting tells a TLS client that nothing follows, as a close tells others.
func (c *conn) parting() {
	if t, ok := c.nc.(*tls.Conn); ok {
		t.CloseWrite()
	}
}
