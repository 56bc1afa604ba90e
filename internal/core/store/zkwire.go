package store

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"go.uber.org/atomic"
)

const (
	maxReply    = 8 << 20 // bytes of one reply; a listing of 100,000 records is about 2 MiB
	minGreeting = 36      // version, timeout, session id, password with its length
	maxGreeting = 256
)

// wireConn wraps the socket that go-zookeeper uses. It guards the library against a server
// that is frozen or is not a ZooKeeper:
//   - The library waits for the length of the greeting for ten times two thirds of a session
//     timeout, and for the rest without any limit. Here the greeting has one deadline.
//   - The library allocates as many bytes as that length says, and "HTTP" means 1.2 GB.
//   - A session timeout of 0 in the greeting, or a reply shorter than its own header, makes
//     the library's goroutines panic, which ends the process.
//   - After a write fails, the library answers the request twice, and a third time if it is
//     closed meanwhile. Nobody takes the third answer, and the client never ends. Here only
//     Read reports that the connection ended.
//
// wireConn also records when it last read something, and why the connection ended. Only
// one goroutine at a time may call Read and SetReadDeadline. Any goroutine may call the
// other methods.
type wireConn struct {
	net.Conn
	greetBy time.Time     // deadline of the greeting
	gone    chan struct{} // closed with the connection
	greeted bool
	pending []byte        // bytes of the greeting that Read still owes
	replies *bufio.Reader // what comes after the greeting
	left    int           // bytes of the present reply that Read still owes

	lastRead atomic.Time // when something was last read

	mu     sync.Mutex // guards what follows
	closed bool
	why    error // why the connection ended; nil while it is open
	reads  int32 // multi-reads sent, see GetAll
	// waiting has the multi-reads that wait for a reply, by xid.
	waiting map[int32]chan<- []byte
}

func newWireConn(c net.Conn, greetBy time.Time) *wireConn {
	w := &wireConn{Conn: c, greetBy: greetBy, gone: make(chan struct{}), waiting: map[int32]chan<- []byte{}}
	w.replies = bufio.NewReader(timedReader{w})
	return w
}

func (w *wireConn) Read(p []byte) (int, error) {
	if !w.greeted {
		w.greeted = true
		greeting, err := w.readGreeting()
		if err != nil {
			return 0, w.fail(err)
		}
		w.pending = greeting
	}
	if len(w.pending) > 0 {
		n := copy(p, w.pending)
		w.pending = w.pending[n:]
		return n, nil
	}
	for w.left == 0 {
		if err := w.nextReply(); err != nil {
			return 0, w.fail(err)
		}
	}
	n, err := w.replies.Read(p[:min(len(p), w.left)])
	w.left -= n
	if err != nil {
		return n, w.fail(err)
	}
	return n, nil
}

// nextReply waits for the next reply. It returns an error if the reply is shorter than 16 bytes or longer than
// maxReply. A reply to a multi-read is not for the library.
func (w *wireConn) nextReply() error {
	head, err := w.replies.Peek(4)
	if err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head)
	if size < 16 || size > maxReply {
		return fmt.Errorf("ZooKeeper sent a reply of %d bytes, but valid replies have 16 to %d", size, maxReply)
	}
	if head, err = w.replies.Peek(8); err != nil {
		return err
	}
	xid := int32(binary.BigEndian.Uint32(head[4:]))
	if xid > firstReadXid {
		w.left = 4 + int(size)
		return nil
	}
	reply := make([]byte, 4+size)
	if _, err := io.ReadFull(w.replies, reply); err != nil {
		return err
	}
	w.deliver(xid, reply[8:])
	return nil
}

// timedReader reads from the socket of a wireConn, and notes when it did.
type timedReader struct{ w *wireConn }

func (r timedReader) Read(p []byte) (int, error) {
	n, err := r.w.Conn.Read(p)
	if n > 0 {
		r.w.lastRead.Store(time.Now())
	}
	return n, err
}

// Write is for the library. It always reports success: if sending fails, the connection
// ends, and the library learns of it from Read.
func (w *wireConn) Write(p []byte) (int, error) {
	_ = w.send(p)
	return len(p), nil
}

// send writes p to the server. It ends the connection if that fails.
func (w *wireConn) send(p []byte) error {
	if _, err := w.Conn.Write(p); err != nil {
		return w.fail(err)
	}
	return nil
}

// quietSince returns the time since the last read, or since asked if that is later.
func (w *wireConn) quietSince(asked time.Time) time.Duration {
	if last := w.lastRead.Load(); last.After(asked) {
		return time.Since(last)
	}
	return time.Since(asked)
}

// fail ends the connection, keeps the first reason and returns err.
func (w *wireConn) fail(err error) error {
	w.mu.Lock()
	if w.why == nil && !w.closed {
		w.why = err
	}
	w.mu.Unlock()
	_ = w.Close()
	return err
}

// failure returns why the connection ended. It returns nil while the connection is open,
// and if Close ended it.
func (w *wireConn) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

// Close ends the connection.
func (w *wireConn) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	close(w.gone)
	return w.Conn.Close()
}

// SetReadDeadline has no effect before the greeting, which has its own deadline.
func (w *wireConn) SetReadDeadline(t time.Time) error {
	if !w.greeted {
		return nil
	}
	return w.Conn.SetReadDeadline(t)
}

func (w *wireConn) readGreeting() ([]byte, error) {
	if err := w.Conn.SetReadDeadline(w.greetBy); err != nil {
		return nil, err
	}
	buf := make([]byte, 4, 4+maxGreeting)
	if _, err := io.ReadFull(w.Conn, buf); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(buf)
	if n < minGreeting || n > maxGreeting {
		return nil, &strangerError{fmt.Sprintf("its answer begins with %q", buf)}
	}
	buf = buf[:4+n]
	if _, err := io.ReadFull(w.Conn, buf[4:]); err != nil {
		return nil, err
	}
	timeout, session := int32(binary.BigEndian.Uint32(buf[8:])), binary.BigEndian.Uint64(buf[12:])
	if session != 0 && timeout <= 0 {
		return nil, &strangerError{fmt.Sprintf("it offers a session timeout of %d ms", timeout)}
	}
	_ = w.Conn.SetReadDeadline(time.Time{}) // if this fails, the next read does
	return buf, nil
}
