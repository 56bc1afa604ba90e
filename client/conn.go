package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/worker"
)

// maxLine is longer than any line of a node's answers.
const maxLine = 4 << 10

// conn is one connection to a node, used by one goroutine.
type conn struct {
	addr string
	nc   net.Conn
	in   *bufio.Reader
	out  []byte
	used time.Time
	// stop cancels the function that closes the connection when the client is closed. It
	// returns false if that function has started, which closes cut when it ends.
	stop func() bool
	cut  chan struct{}
	// cluster is asked for before the first request. known: the node belongs to it. asked: its reply is due.
	cluster      *cluster
	known, asked bool
	// broken means that replies may still come, which would be taken for replies to the
	// next request. The connection must be closed.
	broken bool
	// silent means that not one byte came in reply to the last requests.
	silent bool
}

// dial connects and authenticates before deadline. The end of ctx closes the connection,
// also later.
func (c *Client) dial(ctx context.Context, n *node, deadline time.Time) (*conn, error) {
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	nc, err := c.access.Dial(bounded, n.network, n.address)
	var refused *ids.ReplyError
	switch {
	case errors.As(err, &refused):
		refused.Addr = n.addr
		return nil, refused
	case err != nil:
		return nil, dialog.InWords(n.addr, err)
	}
	cn := &conn{addr: n.addr, nc: nc, cluster: c.cluster, in: bufio.NewReaderSize(nc, maxLine),
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

// get appends want IDs or values to ids, in requests for at most batch each. After an error none
// of them may be used. Each window of requests may take as long as share.
func (c *conn) get(ids []worker.ID, q query, want, batch int, share time.Duration) ([]worker.ID, error) {
	if q.whole {
		return c.getWhole(ids, q, want, share)
	}
	for left := want; left > 0; {
		n := min(left, window*batch)
		left -= n
		c.out = c.out[:0]
		for rest := n; rest > 0; rest -= batch {
			c.request(q, min(rest, batch))
		}
		if err := c.send(time.Now().Add(share)); err != nil {
			return ids, err
		}
		var err error
		if ids, err = c.numbers(ids, n, q, n <= batch); err != nil {
			return ids, err
		}
	}
	c.done()
	return ids, nil
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

// numbers appends the numbers in the next n lines to ids, or returns the refusal in their place. alone: the
// lines are the reply to the only request that was sent.
func (c *conn) numbers(ids []worker.ID, n int, q query, alone bool) ([]worker.ID, error) {
	for i := range n {
		line, err := c.line()
		if err != nil {
			return ids, err
		}
		id, ok := number(line)
		if !ok && !(q.ofSequence() && string(line) == "0") {
			return ids, c.refusal(line, alone && i == 0)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// getWhole sends one request, and appends the want numbers of its line of reply to ids.
func (c *conn) getWhole(ids []worker.ID, q query, want int, share time.Duration) ([]worker.ID, error) {
	line, err := c.ask(q.verb, time.Now().Add(share))
	if err != nil {
		return ids, err
	}
	words := bytes.Split(line, []byte{' '})
	for _, word := range words {
		id, ok := number(word)
		if !ok && string(word) != "0" || len(words) != want || len(ids) > 0 && id < ids[0] {
			return ids, c.refusal(line, true)
		}
		ids = append(ids, id)
	}
	c.done()
	return ids, nil
}

// ready returns nil if the node would answer a GET with an ID, and otherwise its error.
func (c *conn) ready(deadline time.Time) error {
	line, err := c.ask("READY", deadline)
	if err != nil || string(line) == "OK" {
		return err
	}
	return c.refusal(line, true)
}

// ask sends a request, and returns the line of its reply.
func (c *conn) ask(request string, deadline time.Time) ([]byte, error) {
	c.out = append(append(c.out[:0], request...), '\n')
	if err := c.send(deadline); err != nil {
		return nil, err
	}
	return c.line()
}

// done ends an exchange whose replies have come.
func (c *conn) done() { c.broken, c.used = c.in.Buffered() > 0, time.Now() }

func (c *conn) send(deadline time.Time) error {
	c.broken, c.silent = true, true
	if err := c.nc.SetDeadline(deadline); err != nil {
		return dialog.InWords(c.addr, err)
	}
	out := c.out
	if c.asked = !c.known; c.asked {
		out = append([]byte(c.cluster.Request()), out...)
	}
	if _, err := c.nc.Write(out); err != nil {
		return dialog.InWords(c.addr, err)
	}
	return nil
}

// met reads the reply to the question for the node's cluster, and returns an error unless it is the one that is wanted.
func (c *conn) met() error {
	line, err := c.read()
	if err == nil {
		err = c.cluster.Check(c.addr, string(line))
	}
	c.known = err == nil
	return err
}

// line returns the next line of the replies.
func (c *conn) line() ([]byte, error) {
	if c.asked {
		c.asked = false
		if err := c.met(); err != nil {
			return nil, err
		}
	}
	return c.read()
}

func (c *conn) read() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	c.silent = c.silent && len(line) == 0
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%s: %w", c.addr, dialog.ErrReply)
	case err != nil:
		return nil, dialog.InWords(c.addr, err)
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}

// refusal returns the error for a line that is not an ID. whole means that no other reply
// is expected after the line, so that the connection can be used again.
func (c *conn) refusal(line []byte, whole bool) error {
	if len(line) < 2 || line[0] != '-' {
		return fmt.Errorf("%s: %.60q: %w", c.addr, line, dialog.ErrReply)
	}
	if whole {
		c.done()
	}
	return replies.Parse(c.addr, string(line))
}

// number parses an ID as nodes write it: 1 to 2^63-1, decimal, without leading zeros.
func number(line []byte) (worker.ID, bool) {
	id, err := strconv.ParseInt(string(line), 10, 64)
	return worker.ID(id), err == nil && line[0] >= '1' && line[0] <= '9'
}
