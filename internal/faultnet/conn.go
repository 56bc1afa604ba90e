package faultnet

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// conn is one connection through a link.
type conn struct {
	link    *Link
	client  net.Conn
	rewrite [2]Rewriter // nil for none

	// over is done when either side has been closed from here: by a fault, by
	// an error, or because both streams have ended.
	over context.Context
	end  context.CancelFunc

	mu     sync.Mutex // guards target until connect has returned
	target net.Conn

	greeting []byte // what there is of the target's; of the goroutine that reads it
}

func newConn(l *Link, client net.Conn) *conn {
	c := &conn{link: l, client: client}
	c.over, c.end = context.WithCancel(context.Background())
	return c
}

// connect dials the target, as soon as the link lets it.
func (c *conn) connect() bool {
	if !c.await(func(s state) bool { return !s.holdDials }) {
		return false
	}
	target, err := new(net.Dialer).DialContext(c.over, "tcp", c.link.target)
	if err != nil {
		// Refused is what the client is told, once there is a way to tell it.
		if c.await(func(s state) bool { return !s.holdToward[toClient] }) {
			c.reset()
		}
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Err() != nil {
		_ = target.Close()
		return false
	}
	c.target = target
	return true
}

// await waits for a state of the link. It returns false when the connection is
// over.
func (c *conn) await(ok func(state) bool) bool {
	for {
		s, changed := c.link.look()
		if c.over.Err() != nil {
			return false
		}
		if ok(s) {
			return true
		}
		select {
		case <-changed:
		case <-c.over.Done():
		}
	}
}

// close ends both sides, with what is not yet delivered. The kernel makes it a
// reset where something has not been read.
func (c *conn) close() {
	c.end()
	_ = c.client.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target != nil {
		_ = c.target.Close()
	}
}

// reset ends both sides with an RST.
func (c *conn) reset() {
	c.end()
	abort(c.client)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target != nil {
		abort(c.target)
	}
}

// abort closes a connection with an RST, and past TLS, which would say goodbye.
func abort(c net.Conn) {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// chunk is what one read came to.
type chunk struct {
	data []byte
	err  error // the stream's end
	due  time.Time
}

// In flight are inFlight chunks of maxChunk bytes at most, each way; beyond it
// nothing is read, and the kernel's buffers fill.
const (
	inFlight = 64
	maxChunk = 16 << 10
)

// pump carries one direction until its end, which it passes on, or until the
// connection is over. Reading and writing are apart, so that a delay is a
// delay, and not a limit on how much goes through.
func (c *conn) pump(d direction, to, from net.Conn) {
	flight := make(chan chunk, inFlight)
	var reader sync.WaitGroup
	reader.Go(func() { c.read(flight, d, from) })
	defer reader.Wait()
	for {
		var next chunk
		select {
		case next = <-flight:
		case <-c.over.Done():
			return
		}
		if !c.until(next.due) || !c.await(func(s state) bool { return !s.holdToward[d] }) {
			return
		}
		if next.err == nil {
			_, next.err = to.Write(next.data)
		} else if next.err == io.EOF {
			// The other direction goes on: an end is an end of one stream.
			half, ok := to.(interface{ CloseWrite() error })
			if ok && half.CloseWrite() == nil {
				return
			}
		}
		if next.err != nil {
			c.reset()
			return
		}
	}
}

func (c *conn) read(flight chan<- chunk, d direction, from net.Conn) {
	buf := make([]byte, maxChunk)
	for {
		n, err := from.Read(buf)
		if d == toClient {
			c.noteGreeting(buf[:n])
		}
		data := bytes.Clone(buf[:n])
		if c.rewrite[d] != nil {
			data = c.rewrite[d](data)
		}
		// What came with an error came before it.
		for _, next := range []chunk{{data: data}, {err: err}} {
			if len(next.data) == 0 && next.err == nil {
				continue
			}
			next.due = c.link.due()
			select {
			case flight <- next:
			case <-c.over.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// until waits for a moment; at once if that is zero. It returns false when the
// connection is over.
func (c *conn) until(due time.Time) bool {
	if due.IsZero() {
		return true
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.over.Done():
		return false
	}
}
