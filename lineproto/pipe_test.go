package lineproto

import (
	"net"
	"sync"
)

// pipeListener is a listener that accepts what tests pass to it: errors, and ends of
// net.Pipe. It works in a synctest bubble, and real sockets do not.
type pipeListener struct {
	next   chan any // net.Conn or error
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*pipeListener)(nil)

func newPipeListener() *pipeListener {
	return &pipeListener{next: make(chan any), closed: make(chan struct{})}
}

// dial returns the client's end of an accepted connection.
func (l *pipeListener) dial() net.Conn {
	a, b := net.Pipe()
	l.next <- b
	return a
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case x := <-l.next:
		if err, ok := x.(error); ok {
			return nil, &net.OpError{Op: "accept", Net: "pipe", Err: err}
		}
		return x.(net.Conn), nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "pipe", Err: net.ErrClosed}
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
