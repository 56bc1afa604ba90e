package lineproto

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// TLS returns a listener whose connections speak TLS over those of l. The goroutine of
// a connection does its handshake, so a slow client keeps nobody waiting. A client has
// FirstByteTimeout for the handshake.
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

// hello is the socket under a TLS connection. It checks the first byte, so that a
// client without TLS gets an error that it can read. crypto/tls would wait for a header
// of five bytes, and GET with a line feed has four. The error of Read is the reply.
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
			return 0, cmp.Or(otherProtocol(b[:n]), replies.ErrNeedsTLS)
		}
	}
	return n, err
}

// socket returns the connection under a TLS connection. It returns any other connection
// itself.
func socket(nc net.Conn) net.Conn {
	if t, ok := nc.(*tls.Conn); ok {
		if h, ok := t.NetConn().(*hello); ok {
			return h.Conn
		}
		return t.NetConn()
	}
	return nc
}

// handshake does the handshake of a TLS connection, and reports whether the connection
// can be served. The client has this many ticks for its first request after the
// handshake.
func (c *conn) handshake(ctx context.Context, ticks int64) bool {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return true
	}
	c.due.Store(c.s.srv.sweeper.tick.Load() + c.s.srv.sweeper.firstByte)
	err := t.HandshakeContext(ctx)
	if err == nil {
		c.awaitFirst(ticks)
		return true
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		if !c.l.draining.Load() {
			c.l.srv.counters.idle.Add(1)
		}
	case !errors.Is(err, io.EOF): // EOF: a probe that only connects
		c.l.srv.counters.badTLS.Add(1)
		c.l.srv.cfg.Logger.Debug("TLS handshake failed", "peer", c.nc.RemoteAddr().String(), "error", err)
	}
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		plainly := socket(c.nc)
		if _, err := plainly.Write(linesCRLF.fail(nil, reply)); err == nil {
			c.lingerOn(plainly, noDeadline)
		}
	}
	return false
}

// parting tells a TLS client that nothing follows. Other clients learn that from the
// close.
func (c *conn) parting() {
	if t, ok := c.nc.(*tls.Conn); ok {
		t.CloseWrite()
	}
}
