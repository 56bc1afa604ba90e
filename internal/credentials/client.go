package credentials

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"time"
)

// Client is how to get at a node. Its zero value is for nodes that ask for
// nothing.
type Client struct {
	// TLS is for TCP; unix sockets are always plain. nil means plain TCP. An
	// empty ServerName means the host that is dialled.
	TLS *tls.Config
	// Token is brought to the node. Empty means none.
	Token string
}

// RefusedError is what a node answered to a token, an error reply of the line
// protocol without its line ending.
type RefusedError struct{ Reply string }

func (e *RefusedError) Error() string { return "the node answered " + e.Reply }

// Dial connects, and returns when requests may be sent. ctx bounds that, and
// not the connection's life.
func (c Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if c.TLS != nil && network != "unix" {
		config := c.TLS
		if config.ServerName == "" {
			config = config.Clone()
			config.ServerName, _, _ = net.SplitHostPort(address)
		}
		t := tls.Client(nc, config)
		if err := t.HandshakeContext(ctx); err != nil {
			_ = nc.Close()
			return nil, err
		}
		nc = t
	}
	if err := c.auth(ctx, nc); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return nc, nil
}

// maxReply is longer than any answer to a token.
const maxReply = 512

func (c Client) auth(ctx context.Context, nc net.Conn) error {
	if c.Token == "" {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(nc, "AUTH "+c.Token+"\n"); err != nil {
		return err
	}
	// Byte by byte: what comes behind the line is the caller's.
	var reply []byte
	for b := make([]byte, 1); len(reply) < maxReply; reply = append(reply, b[0]) {
		if _, err := io.ReadFull(nc, b); err != nil {
			return err
		}
		if b[0] == '\n' {
			break
		}
	}
	if line := strings.TrimRight(string(reply), "\r"); line != "OK" {
		return &RefusedError{line}
	}
	if !stop() {
		return ctx.Err()
	}
	return nil
}
