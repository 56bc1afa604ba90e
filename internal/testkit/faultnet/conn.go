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
	link   *Link
	client net.Conn

	// over is done once this package has closed the connection: because of a fault or an
	// error, or because both streams have ended.
	over context.Context
	end  context.CancelFunc

	mu     sync.Mutex // guards target until connect has returned
	target net.Conn

	// greeting is the beginning of ZooKeeper's first message, up to greetingSize bytes.
	// Only the goroutine that reads from the target uses the field.
	greeting []byte
	number   int // 1 for the link's first connection
}

func newConn(l *Link, client net.Conn) *conn {
	c := &conn{link: l, client: client}
	c.over, c.end = context.WithCancel(context.Background())
	return c
}

// connect waits until the link lets it dial, and dials the target. It returns false if the
// connection is over or the target refuses.
func (c *conn) connect() bool {
	if !c.await(func(s state) bool { return !s.holdDials }) {
		return false
	}
	target, err := new(net.Dialer).DialContext(c.over, "tcp", c.link.target)
	if err != nil {
		// The client gets a reset, once the link lets that direction pass.
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

// await blocks until ok returns true for the state of the link. It returns false if the
// connection is over first.
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

// close closes both sides, and undelivered data is lost. The kernel sends a reset on a side
// whose received data was not read.
func (c *conn) close() {
	c.end()
	_ = c.client.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target != nil {
		_ = c.target.Close()
	}
}

// reset closes both sides with an RST. Undelivered data is lost.
func (c *conn) reset() {
	c.end()
	abort(c.client)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target != nil {
		abort(c.target)
	}
}

// abort closes a connection with an RST. Under TLS it closes the TCP connection directly,
// because the TLS connection would send a closing alert first.
func abort(c net.Conn) {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// chunk is the data of one read, or the error that ended the stream.
type chunk struct {
	data []byte
	err  error     // io.EOF at the end of the stream
	due  time.Time // not delivered before; zero for no delay
}

// Each direction holds up to inFlight chunks of up to maxChunk bytes. A link with full buffers
// stops reading, so that the kernel's buffers fill and the sender blocks.
const (
	inFlight = 64
	maxChunk = 16 << 10
)

// pump carries one direction until its stream ends or the connection is over. It passes the
// end of the stream on. One goroutine reads and another one writes, so that a delay does not
// limit the throughput.
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
			// Close one direction only: the other one continues.
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
		// Data that Read returns along with an error precedes the error.
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

// until blocks until due, or not at all if due is zero. It returns false if the connection is
// over first.
func (c *conn) until(due time.Time) bool {
	if due.IsZero() {
		return true
	}
	ctx, cancel := context.WithDeadline(c.over, due)
	defer cancel()
	<-ctx.Done()
	return c.over.Err() == nil
}
