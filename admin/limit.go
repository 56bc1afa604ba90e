package admin

import (
	"net"
	"sync"
)

// maxConns is how many connections are open at once: a node's descriptors are
// for those who ask for IDs.
const maxConns = 200

// limited is a listener that closes connections beyond so many.
type limited struct {
	net.Listener
	taken chan struct{} // its capacity is the limit
}

func limit(l net.Listener, n int) net.Listener {
	return &limited{l, make(chan struct{}, n)}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.taken <- struct{}{}:
			return &limitedConn{Conn: c, leave: func() { <-l.taken }}, nil
		default:
			_ = c.Close()
		}
	}
}

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

func (c *limitedConn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}
