package client

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/worker"
)

// maxLine is longer than any line of a node's answers.
const maxLine = 4 << 10

// conn is one connection to a node, used by one goroutine.
type conn struct {
	addr string
	nc   net.Conn
	in   *dialog.Reader
	out  []byte
	used time.Time
	// stop cancels the function that closes the connection when the client is closed. It
	// returns false if that function has started, which closes cut when it ends.
	stop func() bool
	cut  chan struct{}
	// cluster is asked for before the first request. known: the node belongs to it.
	cluster *cluster
	known   bool
	// broken means that replies may still come, which would be taken for replies to the
	// next request. The connection must be closed.
	broken bool
	// before is the number of bytes that had come when the last requests were sent.
	before int64
}

// dial connects and authenticates before deadline. The end of ctx closes the connection,
// also later.
func (p *pool) dial(ctx context.Context, n *node, deadline time.Time) (*conn, error) {
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	nc, err := p.access.Dial(bounded, n.addr)
	if err != nil {
		return nil, dialog.InWords(n.addr, err)
	}
	cn := &conn{addr: n.addr, nc: nc, cluster: p.cluster, in: dialog.NewReader(nc, n.addr, maxLine),
		cut: make(chan struct{}), used: time.Now()}
	cn.stop = context.AfterFunc(ctx, func() { defer close(cn.cut); _ = nc.Close() })
	return cn, nil
}

func (c *conn) close() {
	if !c.stop() {
		<-c.cut
	}
	_ = c.nc.Close()
}

// window is the most requests that are sent before their replies are read. A node
// disconnects a client that writes without reading once the buffers are full.
const window = 64

// get appends want IDs or values to numbers, in requests for at most batch each. After an error none
// of them may be used. The node has the time share to answer each window of requests.
func (c *conn) get(numbers []worker.ID, q query, want, batch int, share time.Duration) ([]worker.ID, error) {
	if q.oneLine {
		return c.getOneLine(numbers, q, want, share)
	}
	for left := want; left > 0; {
		n := min(left, window*batch)
		left -= n
		c.out = c.out[:0]
		for rest := n; rest > 0; rest -= batch {
			c.request(q, min(rest, batch))
		}
		err := c.send(time.Now().Add(share))
		for rest := n; err == nil && rest > 0; rest -= batch {
			numbers, err = dialog.Numbers(c.in, numbers, min(rest, batch), q.least())
			if isRefusal(err) && rest <= batch {
				c.done() // no other reply is due
			}
		}
		if err != nil {
			return numbers, err
		}
	}
	c.done()
	return numbers, nil
}

// request adds a request for n IDs or values to those that send sends.
func (c *conn) request(q query, n int) {
	c.out = append(c.out, q.verb...)
	if n > 1 {
		c.out = append(c.out, ' ')
		c.out = strconv.AppendInt(c.out, int64(n), 10)
	}
	c.out = append(c.out, '\n')
}

// getOneLine sends one request, and appends the want numbers of its line of reply to numbers.
func (c *conn) getOneLine(numbers []worker.ID, q query, want int, share time.Duration) ([]worker.ID, error) {
	line, err := c.ask(q.verb, time.Now().Add(share))
	if err != nil {
		return numbers, err
	}
	numbers, rest, ok := dialog.Row(numbers, line, want)
	if !ok || len(rest) > 0 {
		return numbers, c.refusal(line)
	}
	c.done()
	return numbers, nil
}

// ready returns nil if the node would answer a GET with an ID, and otherwise its error.
func (c *conn) ready(deadline time.Time) error {
	line, err := c.ask("READY", deadline)
	if err != nil || string(line) == "OK" {
		return err
	}
	return c.refusal(line)
}

// ask sends a request, and returns the line of its reply.
func (c *conn) ask(request string, deadline time.Time) ([]byte, error) {
	c.out = append(append(c.out[:0], request...), '\n')
	if err := c.send(deadline); err != nil {
		return nil, err
	}
	return c.in.Line()
}

// done ends an exchange whose replies have come.
func (c *conn) done() { c.broken, c.used = c.in.Buffered() > 0, time.Now() }

// send writes the requests. On a new connection it reads which cluster the node belongs to, and returns an error unless
// it is the one that is wanted.
func (c *conn) send(deadline time.Time) error {
	c.broken, c.before = true, c.in.Bytes()
	if err := c.nc.SetDeadline(deadline); err != nil {
		return dialog.InWords(c.addr, err)
	}
	out := c.out
	if !c.known {
		out = append([]byte(c.cluster.Request()), out...)
	}
	if _, err := c.nc.Write(out); err != nil {
		return dialog.InWords(c.addr, err)
	}
	if c.known {
		return nil
	}
	line, err := c.in.Line()
	if err == nil {
		err = c.cluster.Check(c.addr, string(line))
	}
	c.known = err == nil
	return err
}

// isSilent reports whether not one byte came in reply to the last requests.
func (c *conn) isSilent() bool { return c.in.Bytes() == c.before }

// refusal returns the error for the only line that was due, which is not the wanted reply.
func (c *conn) refusal(line []byte) error {
	err := c.in.Refusal(line)
	if isRefusal(err) {
		c.done()
	}
	return err
}
