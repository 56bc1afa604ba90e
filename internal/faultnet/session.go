package faultnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// What a ZooKeeper says first: length, version, session timeout, session, and
// a password with its length.
const (
	greetingSize = 40
	timeoutAt    = 8
	sessionAt    = 12
)

// noteGreeting keeps the password of the session that has been greeted last.
func (c *conn) noteGreeting(came []byte) {
	missing := greetingSize - len(c.greeting)
	if missing == 0 {
		return
	}
	c.greeting = append(c.greeting, came[:min(missing, len(came))]...)
	if len(c.greeting) < greetingSize || binary.BigEndian.Uint64(c.greeting[sessionAt:]) == 0 {
		return // not all of it, or the news that the session has expired
	}
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.greeting = c.greeting
}

// ExpireSession has the target, a ZooKeeper, end the session that came about
// through this link last, as it does with one that has expired: with the
// password in the greeting anybody may take the session over and close it. It
// does not go through the link, whatever state that is in.
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
	connect := make([]byte, 12, greetingSize) // version, and the last zxid seen: both 0
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

// exchange sends one message and reads another, each behind its length.
func exchange(server net.Conn, message []byte) error {
	if _, err := server.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)); err != nil {
		return err
	}
	var length [4]byte
	if _, err := io.ReadFull(server, length[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, server, int64(binary.BigEndian.Uint32(length[:])))
	return err
}
