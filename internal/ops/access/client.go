package access

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/replies"
)

// Client connects to a node. The zero Client is for nodes without TLS and tokens.
type Client struct {
	// TLS is used for TCP. Unix sockets are always plain. nil means plain TCP. An empty
	// ServerName means the host that is dialled.
	TLS *tls.Config
	// Token is sent to the node. Empty means none.
	Token string
}

// Dial returns a connection on which requests may be sent: it has connected, completed the
// TLS handshake and sent the token. The end of ctx stops Dial, but does not close a
// connection that Dial has returned. If the node refuses the token, the error is an
// *ids.ReplyError without an address.
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

// maxReply is the most bytes that are read of the answer to a token, longer than any answer.
const maxReply = 512

func (c Client) auth(ctx context.Context, nc net.Conn) error {
	if c.Token == "" {
		return nil
	}
	end := Interrupt(ctx, nc)
	defer end()
	if _, err := io.WriteString(nc, "AUTH "+c.Token+"\n"); err != nil {
		return err
	}
	// Reading byte by byte leaves what follows the line for the caller.
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
		return replies.Parse("", line)
	}
	if !end() {
		return ctx.Err()
	}
	return nil
}

// Interrupt makes reads and writes of nc fail once ctx is done. The function that it returns ends that, and reports
// whether ctx was not done before. No goroutine is left then. It may be called again.
func Interrupt(ctx context.Context, nc net.Conn) (end func() (inTime bool)) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)); close(interrupted) })
	return sync.OnceValue(func() bool {
		inTime := stop()
		if !inTime {
			<-interrupted
		}
		return inTime
	})
}
