package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/flaked/flaked/worker"
)

// maxIdle is when a connection is no longer trusted. Nodes close idle ones
// after 10 minutes by default, and a firewall may forget them sooner.
const maxIdle = 4 * time.Minute

// keepIDs is how much room for IDs a lane keeps from one request to the next.
const keepIDs = 1 << 16

// lane is a goroutine that asks nodes, one request at a time, and its
// connections. What calls come while it waits for a reply go into its next
// request together: that is how they are coalesced.
type lane struct {
	c      *Client
	roused chan struct{} // of one element
	conns  map[*node]*conn
	making map[*node]chan connected // of one element
	ids    []worker.ID              // of the last reply
	job    job
	// settling is that Client.settling counts it. Guarded by Client.mu.
	settling bool
}

type connected struct {
	conn *conn
	err  error
}

// job is calls to be answered with one reply of a node.
type job struct {
	node  *node
	calls []*call
	want  int // IDs in all
	share time.Duration
}

func newLane(c *Client) *lane {
	return &lane{c: c, roused: make(chan struct{}, 1), conns: make(map[*node]*conn), making: make(map[*node]chan connected)}
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
		for _, made := range l.making {
			if m := <-made; m.err == nil {
				m.conn.close()
			}
		}
	}()
	for l.next(ctx) {
		err := l.ask()
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
func (l *lane) ask() error {
	n := l.job.node
	if conn := l.conns[n]; conn != nil {
		delete(l.conns, n)
		if time.Since(conn.used) < maxIdle {
			err := l.exchange(conn)
			if err == nil || !conn.silent || errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			// It was closed before it answered anything, most likely as it had been
			// idle, or as the node was started anew.
		} else {
			conn.close()
		}
	}
	conn, err := l.connect(n)
	if err != nil {
		return err
	}
	return l.exchange(conn)
}

// connect makes a connection, or waits on for one that took longer than the
// last job had time for: where calls are in a greater hurry than a handshake
// takes, there would else never be one.
func (l *lane) connect(n *node) (*conn, error) {
	made := l.making[n]
	if made == nil {
		made = make(chan connected, 1)
		l.c.start(func(ctx context.Context) {
			conn, err := l.c.dial(ctx, n, time.Now().Add(l.c.cfg.Timeout))
			made <- connected{conn, err}
		})
	}
	late := time.NewTimer(l.job.share)
	defer late.Stop()
	select {
	case m := <-made:
		delete(l.making, n)
		return m.conn, m.err
	case <-late.C:
		l.making[n] = made
		return nil, fmt.Errorf("%s: no connection in time: %w", n.addr, os.ErrDeadlineExceeded)
	}
}

// exchange asks on a connection, and keeps it if that can be used on.
func (l *lane) exchange(conn *conn) (err error) {
	if cap(l.ids) > keepIDs {
		l.ids = nil
	}
	l.ids, err = conn.get(l.ids[:0], l.job.want, l.c.cfg.MaxBatch, l.job.share)
	if conn.broken {
		conn.close()
	} else {
		l.conns[l.job.node] = conn
	}
	return err
}
