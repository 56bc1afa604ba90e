package faultnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// These are the size and the offsets of ZooKeeper's first message, in bytes. It holds the
// length, the version, the session timeout, the session ID, the length of the password and the
// password.
const (
	greetingSize = 40
	timeoutAt    = 8
	sessionAt    = 12
)

// noteGreeting collects the target's first message, and stores it in the link for
// ExpireSession once it is complete.
func (c *conn) noteGreeting(came []byte) {
	missing := greetingSize - len(c.greeting)
	if missing == 0 {
		return
	}
	c.greeting = append(c.greeting, came[:min(missing, len(came))]...)
	if len(c.greeting) < greetingSize || binary.BigEndian.Uint64(c.greeting[sessionAt:]) == 0 {
		return // incomplete, or session 0: the session has expired
	}
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.number > c.link.greeted { // a client that gave up on an earlier one may hear from it later
		c.link.greeting, c.link.greeted = c.greeting, c.number
	}
}

// ExpireSession makes the target, a ZooKeeper server, end the last session that was created
// through this link, as if the session had expired. For that it takes the session over with
// the password in the server's first message, and closes it. ExpireSession connects to the
// target directly, so it works in any state of the link. It fails if the link has carried no
// session.
func (l *Link) ExpireSession() error {
	l.mu.Lock()
	g := l.greeting
	l.mu.Unlock()
	if g == nil {
		return errors.New("faultnet: there has been no session")
	}
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := server.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	connect := make([]byte, 12, greetingSize) // version and last zxid seen: both 0
	connect = append(connect, g[timeoutAt:sessionAt]...)
	connect = append(connect, g[sessionAt:]...)
	if err := exchange(server, connect); err != nil {
		return fmt.Errorf("faultnet: take the session over: %w", err)
	}
	// Request 1 is closeSession, -11. The server may hang up instead of answering.
	if err := exchange(server, []byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5}); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("faultnet: close the session: %w", err)
	}
	return nil
}

// exchange sends one message and reads and discards one reply. Both are preceded by their
// length.
func exchange(server net.Conn, message []byte) error {
	if _, err := server.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))),
		message...)); err != nil {
		return err
	}
	var length [4]byte
	if _, err := io.ReadFull(server, length[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, server, int64(binary.BigEndian.Uint32(length[:])))
	return err
}
