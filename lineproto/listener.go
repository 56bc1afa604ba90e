package lineproto

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// After a transient error of Accept, such as no free descriptor, the wait before
	// the next try doubles from acceptBackoffMin to acceptBackoffMax.
	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second

	// maxRefusing bounds the connections over MaxConns that are being told BUSY. Further
	// ones are closed without a reply.
	maxRefusing = 256
)

// keepAlive detects a peer that vanished within two minutes. Go's default, a probe
// every 15 seconds, is too often for connections that are idle by design.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}

// accept starts connections until l fails or is closed, and returns that error. If ctx
// is done while accept waits for another try, it returns the error of ctx. calls is the
// context of Backend calls.
func (e *engine) accept(ctx, calls context.Context, l net.Listener, log hclog.Logger) error {
	var (
		backoff time.Duration
		refused int // in a row
		c       = &e.srv.counters
		limit   = int64(e.srv.cfg.MaxConns)
	)
	for {
		nc, err := l.Accept()
		if err != nil {
			if !isTransient(err) {
				return err
			}
			if backoff == 0 {
				log.Warn("failed to accept a connection, retrying", "error", err)
			}
			backoff = min(max(2*backoff, acceptBackoffMin), acceptBackoffMax)
			if !sleep(ctx, backoff) {
				return ctx.Err()
			}
			continue
		}
		if backoff > 0 {
			backoff = 0
			log.Info("accepting connections again")
		}
		if t, ok := socket(nc).(*net.TCPConn); ok {
			t.SetKeepAliveConfig(keepAlive) // TCP_NODELAY is Go's default
			limitUnsent(t)
		}
		open := c.open.Add(1)
		if open == 1 {
			e.srv.sweeper.wake()
		}
		if open <= limit {
			if refused > 0 {
				log.Info("accepting connections below the limit again", "refused_conns", refused)
				refused = 0
			}
			e.admit(calls, nc)
			continue
		}
		c.refused.Add(1)
		if refused++; refused == 1 {
			log.Warn("refusing connections", "max_conns", limit)
		}
		e.refuse(nc)
		c.open.Add(-1) // after refuse has counted it, so that the sweep does not fall asleep between
	}
}

// admit begins to serve a connection.
func (e *engine) admit(calls context.Context, nc net.Conn) {
	c := &e.srv.counters
	c.total.Add(1)
	due := int64(unlimited)
	if e.srv.cfg.Authenticate != nil {
		due = e.srv.sweeper.auth
	}
	if e.srv.crowded() {
		due = min(due, e.srv.sweeper.firstByte)
	}
	if e.loop.take(nc, due, false) {
		runtime.Gosched() // while clients come one after the other, the loop goes first
		return
	}
	e.start(nc, due, func(cn *conn) {
		defer c.open.Add(-1)
		if cn.handshake(calls, due) {
			cn.serve(calls)
		}
	})
}

// refuse answers a connection over MaxConns with BUSY and closes it. accept does not
// wait for that.
func (e *engine) refuse(nc net.Conn) {
	refusing, due := &e.srv.refusing, e.srv.sweeper.linger
	if refusing.Add(1) > maxRefusing {
		refusing.Add(-1)
		nc.Close()
		return
	}
	if e.loop.take(nc, due, true) {
		return
	}
	e.start(nc, due, func(c *conn) {
		defer refusing.Add(-1)
		if _, err := nc.Write(e.srv.busy(nil)); err == nil {
			c.linger()
		}
	})
}

// isTransient reports whether an error of Accept may pass: no descriptor, no memory, or
// a client that disconnected in the queue.
func isTransient(err error) bool {
	transient := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	return slices.ContainsFunc(transient, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// sleep waits for d and returns true. It returns false as soon as ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
