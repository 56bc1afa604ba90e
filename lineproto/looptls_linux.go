package lineproto

import (
	"crypto/tls"
	"io"
	"syscall"

	"github.com/flaked/flaked/internal/ops/host/rawsocket"
)

// records is TLS on a connection of a loop, after the handshake. It is also the socket that
// crypto/tls reads from and writes to: a read does not block, and a write is kept in out.
// After the handshake, crypto/tls goes on after a temporary error of its socket.
type records struct {
	*tls.Conn
	socket recordSocket
}

// recordSocket is the socket of records.
type recordSocket struct {
	fd   int
	room int    // bytes that may still be received in this read of the loop
	out  []byte // records to send
}

func (r *recordSocket) Read(b []byte) (int, error) {
	b = b[:min(len(b), r.room)]
	if len(b) == 0 {
		return 0, syscall.EAGAIN
	}
	n, e := rawsocket.Recv(r.fd, b)
	switch {
	case e != 0:
		return 0, e
	case n == 0:
		return 0, io.EOF
	case n < len(b):
		r.room = 0 // saves the call that would say that nothing is left
	default:
		r.room -= n
	}
	return n, nil
}

func (r *recordSocket) Write(b []byte) (int, error) {
	r.out = append(r.out, b...)
	return len(b), nil
}

// receive reads once behind l.in[:k], as Recv does, and notes the end of input. With TLS it
// decrypts all records that have arrived whole: epoll does not report those that crypto/tls keeps.
func (l *loop) receive(c *loopConn, k int) (n int, e syscall.Errno) {
	if c.tls == nil {
		n, e = rawsocket.Recv(c.fd, l.in[k:])
		c.eof = n == 0 && e == 0
		return n, e
	}
	s := &c.tls.socket
	s.room = loopBuf
	for {
		if k+n == len(l.in) { // more than loopBuf, with a record that was begun in an earlier read
			l.in = append(l.in, make([]byte, loopBuf)...)
		}
		m, err := c.tls.Read(l.in[k+n:])
		switch n += m; err {
		case nil:
		case syscall.EAGAIN:
			if n == 0 && len(s.out) == 0 {
				return 0, syscall.EAGAIN
			}
			return n, 0 // perhaps only the reply to an update of keys
		case io.EOF:
			c.eof = true
			return n, 0
		default:
			return 0, syscall.EPROTO // close sends the alert
		}
	}
}

// seal makes records of the output. It reports whether it could.
func (l *loop) seal(c *loopConn) bool {
	if c.tls == nil || len(c.s.out)+len(c.tls.socket.out) == 0 {
		return true
	}
	s := &c.tls.socket
	s.out = append(l.sealed[:0], s.out...)
	if len(c.s.out) > 0 {
		if _, err := c.tls.Write(c.s.out); err != nil {
			return false
		}
	}
	c.s.out, l.sealed, s.out = s.out, c.s.out, nil
	return true
}

// parting does what conn.parting does.
func (c *loopConn) parting() {
	if c.tls == nil {
		return
	}
	c.tls.CloseWrite()
	if out := c.tls.socket.out; len(out) > 0 {
		rawsocket.Send(c.fd, out) // a full socket means that the client reads nothing
	}
}
