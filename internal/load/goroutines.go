package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// redialAfter is how long a lost connection stays so.
const redialAfter = 100 * time.Millisecond

// client serves one connection with two goroutines: one reads, one writes.
type client struct {
	conn *conn
	net  net.Conn
	// news has the writer look again: replies have come, or the end has.
	news chan struct{}
}

func newClient(c *conn, n net.Conn) *client {
	return &client{conn: c, net: n, news: make(chan struct{}, 1)}
}

func (k *client) wake() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

func (k *client) serve(ctx context.Context) {
	c, l := k.conn, k.conn.lane
	for {
		code := k.session()
		now := l.now()
		l.mu.Lock()
		if code == "" {
			c.abandon(now)
			l.flush()
		} else {
			c.lost(code, now)
		}
		l.mu.Unlock()
		if code == "" || !k.redial(ctx) {
			return
		}
	}
}

// redial opens the connection again. It gives up when the run is over.
func (k *client) redial(ctx context.Context) bool {
	l := k.conn.lane
	for {
		pause := time.NewTimer(redialAfter)
		for waiting := true; waiting && !l.over(); {
			select {
			case <-pause.C:
				waiting = false
			case <-k.news:
			}
		}
		pause.Stop()
		l.mu.Lock()
		if l.over() {
			k.conn.open()
			k.conn.abandon(l.now())
			l.mu.Unlock()
			return false
		}
		l.mu.Unlock()
		n, err := dial(ctx, l.cfg)
		l.mu.Lock()
		if err == nil {
			k.net = n
			k.conn.open()
			l.mu.Unlock()
			return true
		}
		l.tally.errors[codeConnect]++
		l.seenErrors.Add(1)
		l.mu.Unlock()
	}
}

// over tells whether nothing is to be sent any more.
func (r *run) over() bool { return r.now() >= r.until.Load() }

// session writes until the run is over, "", or the connection is lost.
func (k *client) session() (code string) {
	broken := make(chan error, 1)
	go k.read(broken)
	code, received := k.write(broken)
	_ = k.net.Close()
	if !received {
		<-broken
	}
	return code
}

// write sends what is due. It tells whether it has heard from the reader that
// that has ended.
func (k *client) write(broken <-chan error) (code string, ended bool) {
	c, l := k.conn, k.conn.lane
	const look = 50 * time.Millisecond // for timeouts
	timer := time.NewTimer(look)
	defer timer.Stop()
	for {
		now := l.now()
		l.mu.Lock()
		c.pump(now)
		chunk, late := c.chunk(), c.late(now)
		over := now >= l.until.Load() && (!c.owes() || now >= l.until.Load()+l.grace.Load())
		next := look
		if l.cfg.Rate > 0 && c.flight < l.cfg.Pipeline {
			next = min(next, time.Duration(c.due(c.sent)-now))
		}
		l.mu.Unlock()
		switch {
		case over:
			return "", false
		case late:
			return codeTimeout, false
		case len(chunk) > 0:
			// Somebody who reads nothing would have it wait for ever.
			_ = k.net.SetWriteDeadline(time.Now().Add(l.cfg.Timeout))
			n, err := k.net.Write(chunk)
			l.mu.Lock()
			c.wrote(n)
			l.mu.Unlock()
			if err != nil {
				return codeOf(err), false
			}
			continue
		}
		timer.Reset(max(next, 0))
		select {
		case err := <-broken:
			return codeOf(err), true
		case <-k.news:
		case <-timer.C:
		}
	}
}

// read takes replies until there are no more.
func (k *client) read(broken chan<- error) {
	c, l := k.conn, k.conn.lane
	buf := make([]byte, 16<<10)
	for {
		if len(buf)-len(c.rest) < 8<<10 { // rest is changed here alone
			buf = make([]byte, 2*len(buf))
		}
		had := copy(buf, c.rest)
		n, err := k.net.Read(buf[had:])
		if n > 0 {
			l.mu.Lock()
			if failed := c.received(buf[:had+n], l.now()); failed != nil {
				err = failed
			}
			l.flush()
			l.mu.Unlock()
			k.wake()
		}
		if err != nil {
			broken <- err
			return
		}
	}
}

// codeOf is what a connection was lost to.
func codeOf(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return codeClosed
	case errors.Is(err, errReply):
		return codeProtocol
	case errors.Is(err, os.ErrDeadlineExceeded):
		return codeTimeout
	}
	return codeBroken
}

// clients are loops of one connection each.
func clients(lanes []*lane, conns []net.Conn) []loop {
	loops := make([]loop, len(conns))
	for i, n := range conns {
		loops[i] = newClient(lanes[i%len(lanes)].conns[i/len(lanes)], n)
	}
	return loops
}
