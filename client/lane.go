package client

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/flaked/flaked/worker"
)

// maxIdle is when a connection is no longer trusted. Nodes close idle ones
// after 10 minutes by default, and a firewall may forget them sooner.
const maxIdle = 4 * time.Minute

// lane is a goroutine that asks nodes, one request at a time, and its
// connections. What calls come while it waits for a reply go into its next
// request together: that is how they are coalesced.
type lane struct {
	c      *Client
	roused chan struct{} // of one element
	conns  map[*node]*conn
	ids    []worker.ID // of the last reply
	job    job
	// settling is that Client.settling counts it. Guarded by Client.mu.
	settling bool
}

// job is calls to be answered with one reply of a node.
type job struct {
	node  *node
	calls []*call
	want  int // IDs in all
	share time.Duration
}

func newLane(c *Client) *lane {
	return &lane{c: c, roused: make(chan struct{}, 1), conns: make(map[*node]*conn)}
}

// rouse tells a lane that there is something to look at.
func (l *lane) rouse() {
	select {
	case l.roused <- struct{}{}:
	default:
	}
}

func (l *lane) run(ctx context.Context) {
	defer func() {
		for _, conn := range l.conns {
			conn.close()
		}
	}()
	for l.next(ctx) {
		err := l.ask(ctx)
		l.c.settle(l, err)
		if len(l.job.calls) > 1 {
			// Those who were answered may well ask again: let them, and ask for all.
			runtime.Gosched()
		}
	}
}

// next waits until there are calls and a node that may be asked, and makes them
// the lane's job. It returns false when the client is closed.
func (l *lane) next(ctx context.Context) bool {
	for {
		ready, wait := l.c.assign(l)
		if ready {
			return true
		}
		var later <-chan time.Time
		if wait > 0 {
			later = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return false
		case <-l.roused:
		case <-later:
		}
	}
}

// ask has the lane's job answered by its node, into l.ids.
func (l *lane) ask(ctx context.Context) error {
	n, deadline := l.job.node, time.Now().Add(l.job.share)
	conn := l.conns[n]
	if conn != nil {
		delete(l.conns, n)
		if time.Since(conn.used) < maxIdle {
			err := l.exchange(conn, deadline)
			if err == nil || !conn.silent || errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			// It was closed before it answered anything, most likely as it had been
			// idle, or as the node was started anew.
		} else {
			conn.close()
		}
	}
	conn, err := l.c.dial(ctx, n, deadline)
	if err != nil {
		return err
	}
	return l.exchange(conn, deadline)
}

// exchange asks on a connection, and keeps it if that can be used on.
func (l *lane) exchange(conn *conn, deadline time.Time) (err error) {
	l.ids, err = conn.get(l.ids[:0], l.job.want, l.c.cfg.MaxBatch, deadline)
	if conn.broken {
		conn.close()
	} else {
		l.conns[l.job.node] = conn
	}
	return err
}
