package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// redialAfter is the wait before a lost connection is opened again.
const redialAfter = 100 * time.Millisecond

// client serves one connection with two goroutines: a reader and a writer.
type client struct {
	conn *conn
	net  net.Conn
	// news makes the writer look again, because replies have come or the run has ended.
	news chan struct{}
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

// redial opens the connection again. It returns false when the run is over.
func (k *client) redial(ctx context.Context) bool {
	l := k.conn.lane
	for {
		sleep(ctx, redialAfter)
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

// over reports whether the time of the run is over: only requests that are due already
// may be sent.
func (r *run) over() bool { return r.now() >= r.until.Load() }

// session serves the connection until the run is over, and then returns "". If the
// connection is lost, it returns the code of the error.
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

// write sends the requests that are due. ended reports whether the reader has ended.
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
			// A server that reads nothing would block the write for ever.
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

// read handles replies until reading fails, and sends the error to broken.
func (k *client) read(broken chan<- error) {
	c, l := k.conn, k.conn.lane
	buf := make([]byte, 16<<10)
	for {
		if len(buf)-len(c.rest) < 8<<10 { // only read changes rest
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

// codeOf returns the code for the error that a connection was lost to.
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

// clients returns a loop for each connection.
func clients(lanes []*lane, conns []net.Conn) []loop {
	loops := make([]loop, len(conns))
	for i, n := range conns {
		loops[i] = &client{conn: lanes[i%len(lanes)].conns[i/len(lanes)], net: n, news: make(chan struct{}, 1)}
	}
	return loops
}
