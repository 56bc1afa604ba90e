package lineproto

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// certificate returns the configurations of a server and of its clients.
func certificate(t testing.TB) (server, client *tls.Config) {
	ca := certtest.NewCA(t, "test")
	pair := ca.Pair("server", time.Now().Add(time.Hour)).TLS(t)
	return &tls.Config{Certificates: []tls.Certificate{pair}}, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
}

// stream holds the methods that TCP and unix connections have in common.
type stream interface {
	net.Conn
	CloseWrite() error
	SetReadBuffer(bytes int) error
}

// secret is a stream over TLS.
type secret struct {
	*tls.Conn
	socket stream
}

func (s secret) SetReadBuffer(bytes int) error { return s.socket.SetReadBuffer(bytes) }

func (s secret) CloseWrite() error { return errors.Join(s.Conn.CloseWrite(), s.socket.CloseWrite()) }

// connect dials, with TLS if the server speaks it.
func (r *running) connect() (stream, error) {
	nc, err := net.Dial(r.network, r.addr)
	if err != nil || r.tls == nil {
		s, _ := nc.(stream)
		return s, err
	}
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	c := secret{tls.Client(nc, r.tls), nc.(stream)}
	return c, c.Handshake()
}

// packets is the socket of a TLS client. It holds writes back until they are let go, and then sends
// them in packets of size bytes.
type packets struct {
	net.Conn
	hold bool
	size int
	held []byte
}

// SetWriteDeadline ignores the deadline that CloseWrite sets: what is held back is sent later.
func (p *packets) SetWriteDeadline(time.Time) error { return nil }

func (p *packets) Write(b []byte) (int, error) {
	p.held = append(p.held, b...)
	if p.hold {
		return len(b), nil
	}
	for len(p.held) > 0 {
		n := min(p.size, len(p.held))
		if _, err := p.Conn.Write(p.held[:n]); err != nil {
			return 0, err
		}
		p.held = p.held[n:]
	}
	return len(b), nil
}

// dialPackets returns a TLS connection and its socket. The last message of the handshake is held back.
func dialPackets(t *testing.T, addr string, config *tls.Config, size int) (*tls.Conn, *packets) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	p := &packets{Conn: nc, size: size}
	config = config.Clone()
	config.DynamicRecordSizingDisabled = true // records of 16 KiB
	config.VerifyConnection = func(tls.ConnectionState) error { p.hold = true; return nil }
	c := tls.Client(p, config)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c, p
}
