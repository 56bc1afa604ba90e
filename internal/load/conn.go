package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
)

// maxLine is longer than any line of a reply.
const maxLine = 16 << 10

// redialAfter is the wait before a lost connection is opened again.
const redialAfter = 100 * time.Millisecond

// conn is one connection's share of the load. Only its goroutine uses it.
type conn struct {
	*run
	number int
	net    net.Conn
	in     *dialog.Reader
	block  string // Pipeline requests
	size   int    // bytes of one request

	last   int64   // the ID received last, 0 for none
	sent   int64   // requests of an open loop, those under way included
	awake  int64   // when this goroutine last woke up because a request was due
	starts []int64 // of the requests under way
	ids    []int64 // of the last reply

	deadlineSet int64 // when setDeadline was called
}

func newConn(r *run, number int, nc net.Conn) *conn {
	request := r.cfg.request()
	c := &conn{run: r, number: number, block: strings.Repeat(request, r.cfg.Pipeline), size: len(request)}
	c.open(nc)
	return c
}

func (c *conn) open(nc net.Conn) {
	c.net, c.in, c.last = nc, dialog.NewReader(nc, "the node", maxLine), 0
}

// serve sends requests until the run is over. It opens the connection again if it is lost.
func (c *conn) serve(ctx context.Context) {
	for {
		err := c.talk(ctx)
		_ = c.net.Close()
		if err == nil || !c.redial(ctx) {
			break
		}
	}
	if ctx.Err() != nil {
		c.interrupt()
	}
	c.abandon()
}

func (c *conn) redial(ctx context.Context) bool {
	for sleep(ctx, redialAfter) && !c.over(c.now()) {
		nc, err := c.dial(ctx)
		if err == nil {
			c.open(nc)
			return true
		}
		if ctx.Err() == nil {
			c.undialled(err)
		}
	}
	return false
}

// undialled counts a connection that could not be opened, or that the node has refused.
func (c *conn) undialled(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reply, refused := errors.AsType[*ids.ReplyError](err)
	if !refused {
		c.fail(codeConnect, 1)
		return
	}
	c.refused = reply.Error()
	c.fail(string(reply.Code), 1)
}

// talk sends requests and reads their replies. It returns nil when the run is over, and an error
// if the connection is lost.
func (c *conn) talk(ctx context.Context) error {
	nc := c.net
	defer context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Now().Add(min(c.cfg.Timeout, interruptedGrace))) })()
	for {
		c.due(ctx)
		if len(c.starts) == 0 {
			return nil
		}
		c.setDeadline(ctx)
		// If writing fails, so does reading, and a server that is full has sent its reason.
		_, _ = io.WriteString(c.net, c.block[:len(c.starts)*c.size])
		for i, start := range c.starts {
			if err := c.reply(start); err != nil {
				return c.lost(c.starts[i:], err)
			}
			if c.now()-c.deadlineSet > int64(c.cfg.Timeout)/10 {
				c.setDeadline(ctx)
			}
		}
		if c.in.Buffered() > 0 { // a reply without a request
			return c.lost([]int64{c.now()}, dialog.ErrReply)
		}
	}
}

// setDeadline makes the connection fail if no reply comes within the timeout, or within the
// timeout after the end of the run.
func (c *conn) setDeadline(ctx context.Context) {
	grace := c.cfg.Timeout
	if ctx.Err() != nil {
		grace = min(grace, interruptedGrace)
	}
	c.deadlineSet = c.now()
	_ = c.net.SetDeadline(c.base.Add(time.Duration(min(c.deadlineSet, c.until.Load())) + grace))
}

// due waits until requests must be sent, and sets starts to the times from which their latencies
// count. starts is empty when the run is over.
func (c *conn) due(ctx context.Context) {
	now := c.now()
	c.starts = c.starts[:0]
	if c.cfg.Rate == 0 {
		for i := 0; i < c.cfg.Pipeline && !c.over(now); i++ {
			c.starts = append(c.starts, now)
		}
		return
	}
	for {
		next := c.dueAt(c.sent)
		// Requests that were due before the end are sent after it, too.
		if next >= c.until.Load() || now >= c.until.Load()+int64(c.cfg.Timeout) {
			return
		}
		if next <= now {
			break
		}
		if !sleep(ctx, time.Duration(next-now)) {
			return
		}
		now = c.now()
		c.awake = now
	}
	for len(c.starts) < c.cfg.Pipeline {
		due := c.dueAt(c.sent)
		if due > now || due >= c.until.Load() {
			break
		}
		// The server is not to blame if the timer was late. The request counts as measured by
		// when it was due.
		c.starts = append(c.starts, max(due, min(c.awake, c.until.Load()-1)))
		c.sent++
	}
}

// dueAt returns when request k of this connection is due in an open loop. The connections take
// turns.
func (c *conn) dueAt(k int64) int64 {
	return int64(float64(k*int64(c.cfg.Conns)+int64(c.number)) * 1e9 / c.cfg.Rate)
}

// reply reads the reply to a request: a line for each ID, or one line with an error.
func (c *conn) reply(start int64) (err error) {
	c.ids, err = dialog.Numbers(c.in, c.ids[:0], c.cfg.Batch, 1)
	refused, ok := errors.AsType[*ids.ReplyError](err)
	if err != nil && !ok {
		return err
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record(start, now, 1)
	if refused != nil {
		c.fail(string(refused.Code), 1)
		return nil
	}
	for _, id := range c.ids {
		c.checker.add(c.number, c.last, id)
		c.last = id
	}
	c.replies++
	if c.measured(now) {
		c.good++
	}
	return nil
}

// lost counts requests whose connection is lost, with the time that they have waited. It
// returns err.
func (c *conn) lost(starts []int64, err error) error {
	n, now, code := int64(len(starts)), c.now(), codeOf(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, start := range starts {
		c.record(start, now, 1)
	}
	if code == codeTimeout && c.over(now) {
		c.unanswered += n
	} else {
		c.fail(code, n)
	}
	return err
}

// codeOf returns the code for the error that a connection was lost to.
func codeOf(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return codeClosed
	case errors.Is(err, dialog.ErrReply):
		return codeProtocol
	case errors.Is(err, os.ErrDeadlineExceeded):
		return codeTimeout
	}
	return codeBroken
}

// abandon counts the requests of an open loop that were due before the end and not sent.
func (c *conn) abandon() {
	if c.cfg.Rate == 0 {
		return
	}
	now, until := c.now(), c.until.Load()
	n := max(int64(float64(until-c.dueAt(c.sent))*c.cfg.Rate/1e9/float64(c.cfg.Conns)), 0)
	for c.dueAt(c.sent+n) < until { // the division was rounded down
		n++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered += n
	// At a rate far above the server's there are millions of these: one stands for its
	// neighbours.
	step := max(n/10_000, 1)
	for k := int64(0); k < n; k += step {
		c.record(c.dueAt(c.sent+k), now, min(step, n-k))
	}
}

// sleep waits for d, and returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
