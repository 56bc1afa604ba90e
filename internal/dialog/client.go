package dialog

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"
)

// Client connects to a node. The zero Client is for nodes without TLS and tokens.
type Client struct {
	// TLS is used for TCP. Unix sockets are always plain. nil means plain TCP. An empty
	// ServerName means the host that is dialled.
	TLS *tls.Config
	// Token is sent to the node. Empty means none.
	Token string
	// Cluster is compared with that of the node. nil means that any node will do.
	Cluster *Cluster
}

// Dial returns a connection on which requests may be sent: it has connected to an address as of SplitAddr, completed
// the TLS handshake, sent the token and compared the cluster. The end of ctx stops Dial, but does not close a
// connection that Dial has returned. If the node refuses the token, the error is an *ids.ReplyError. InWords words all
// errors.
func (c Client) Dial(ctx context.Context, addr string) (net.Conn, error) {
	network, address, err := SplitAddr(addr)
	if err != nil {
		return nil, err
	}
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
	if err := c.greet(ctx, nc, addr); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return nc, nil
}

// maxReply is the most bytes that are read of the answer to a token or to WORKER, longer than any answer.
const maxReply = 1024

// greet sends the token and asks for the cluster, in one write.
func (c Client) greet(ctx context.Context, nc net.Conn, addr string) error {
	request := ""
	if c.Token != "" {
		request = "AUTH " + c.Token + "\n"
	}
	if c.Cluster != nil {
		request += c.Cluster.Request()
	}
	if request == "" {
		return nil
	}
	end := Interrupt(ctx, nc)
	defer end()
	if _, err := io.WriteString(nc, request); err != nil {
		return err
	}
	in := NewReader(nc, addr, maxReply)
	if c.Token != "" {
		line, err := in.Line()
		if err == nil && string(line) != "OK" {
			err = in.Refusal(line)
		}
		if err != nil {
			return err
		}
	}
	if c.Cluster != nil {
		line, err := in.Line()
		if err == nil {
			err = c.Cluster.Check(addr, string(line))
		}
		if err != nil {
			return err
		}
	}
	if in.Buffered() > 0 { // a reply without a request
		return notReply(addr, "")
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
