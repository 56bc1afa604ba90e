package coordinator

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

const (
	maxReply    = 8 << 20 // bytes of one reply; a listing of 100,000 records is about 2 MiB
	minGreeting = 36      // version, timeout, session id, password with its length
	maxGreeting = 256
)

// wireConn stands between go-zookeeper and the socket, for what the library
// does when the other side is not a ZooKeeper, or a frozen one:
//   - it waits ten times two thirds of a session for the greeting's length and
//     without any limit for its rest: here it all has to come by a deadline;
//   - it allocates whatever that length says, and "HTTP" is 1.2 GB;
//   - a session timeout of 0 in the greeting, or a reply shorter than its own
//     header, panics in its goroutines, which ends the process;
//   - a failed write of re-sent credentials blocks its loop for ever (the same
//     request gets two answers in a channel of one). So a write here does not
//     fail: it ends the connection, and the reader reports that.
//
// Read is called by one goroutine at a time, Write by one, Close by any.
type wireConn struct {
	net.Conn
	by       time.Time   // when the greeting has to be there
	report   func(error) // gets why there is no greeting; or nil for the greeting, then why replies ended
	greeted  bool
	pending  []byte // of the greeting, checked and not yet handed on
	header   [4]byte
	got      int // bytes of header seen
	bodyLeft int // bytes of the present reply still to come
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
	n, err := w.Conn.Read(p)
	if bad := w.checkFrames(p[:n]); bad != nil {
		n, err = 0, bad
	}
	if err != nil {
		return n, w.fail(err)
	}
	return n, nil
}

// fail ends the connection. That it was closed before says nothing: whoever
// did that has reported why.
func (w *wireConn) fail(err error) error {
	if !errors.Is(err, net.ErrClosed) {
		w.report(err)
	}
	_ = w.Close()
	return err
}

func (w *wireConn) Write(p []byte) (int, error) {
	if _, err := w.Conn.Write(p); err != nil {
		_ = w.fail(err)
	}
	return len(p), nil
}

// SetReadDeadline leaves the greeting's deadline alone.
func (w *wireConn) SetReadDeadline(t time.Time) error {
	if !w.greeted {
		return nil
	}
	return w.Conn.SetReadDeadline(t)
}

func (w *wireConn) readGreeting() ([]byte, error) {
	if err := w.Conn.SetReadDeadline(w.by); err != nil {
		return nil, err
	}
	buf := make([]byte, 4, 4+maxGreeting)
	if _, err := io.ReadFull(w.Conn, buf); err != nil {
		return nil, greetingError(err)
	}
	n := binary.BigEndian.Uint32(buf)
	if n < minGreeting || n > maxGreeting {
		return nil, fmt.Errorf("not a ZooKeeper: its answer begins with %q", buf)
	}
	buf = buf[:4+n]
	if _, err := io.ReadFull(w.Conn, buf[4:]); err != nil {
		return nil, greetingError(err)
	}
	timeout, session := int32(binary.BigEndian.Uint32(buf[8:])), binary.BigEndian.Uint64(buf[12:])
	if session != 0 && timeout <= 0 {
		return nil, fmt.Errorf("not a ZooKeeper: it offers a session timeout of %d ms", timeout)
	}
	_ = w.Conn.SetReadDeadline(time.Time{}) // if this fails, the next read does
	if session != 0 {
		// Reported by the reader, because a later report of success would erase
		// the reason that the next read gives.
		w.report(nil)
	}
	return buf, nil
}

func greetingError(err error) error {
	var alert tls.AlertError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		// A server that hangs up on what it has not read resets the connection.
		return errors.New("connection closed without a ZooKeeper's greeting " +
			"(not serving, its data older than what we have seen, too many connections, or not a ZooKeeper)")
	case errors.As(err, &alert):
		return fmt.Errorf("TLS: %w", err)
	}
	return fmt.Errorf("no ZooKeeper's greeting: %w", err)
}

// checkFrames follows the replies' boundaries through what has been read.
func (w *wireConn) checkFrames(p []byte) error {
	for len(p) > 0 {
		if w.bodyLeft > 0 {
			n := min(w.bodyLeft, len(p))
			w.bodyLeft -= n
			p = p[n:]
			continue
		}
		n := copy(w.header[w.got:], p)
		w.got += n
		p = p[n:]
		if w.got == len(w.header) {
			size := binary.BigEndian.Uint32(w.header[:])
			if size < 16 || size > maxReply {
				return fmt.Errorf("ZooKeeper sent a reply of %d bytes, not of 16 to %d", size, maxReply)
			}
			w.bodyLeft, w.got = int(size), 0
		}
	}
	return nil
}
