package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// call runs f, which may block for any time, and returns by the deadline of ctx or after CallTimeout. With an error it
// returns the zero T. If f is still running then, it goes on in the background and ends when its client loses the
// connection. zkClient.close waits for it.
func call[T any](ctx context.Context, z *ZK, op, path string, f func(*zkClient) (T, error)) (T, error) {
	var none T
	ctx, cancel := context.WithTimeout(ctx, z.cfg.CallTimeout)
	defer cancel()
	c, err := z.acquire(ctx)
	if err != nil {
		return none, z.unreachable(op, path, err)
	}
	if want, ok := ctx.Value(sessionKey{}).(int64); ok && c.conn.SessionID() != want {
		c.calls.Done()
		return none, z.unreachable(op, path, errOtherSession)
	}
	type result struct {
		val T
		err error
	}
	done := make(chan result, 1) // buffered: the caller may have left
	go func() {
		defer c.calls.Done()
		val, err := f(c)
		done <- result{val, err}
	}()
	answer, asked := z.notice.Load().Answer, time.Now()
	silent := time.NewTimer(answer)
	defer silent.Stop()
	for {
		select {
		case r := <-done:
			if r.err != nil {
				return none, mapErr(op, path, r.err)
			}
			return r.val, nil
		case <-ctx.Done():
			return none, z.unreachable(op, path, ctx.Err())
		case <-silent.C:
			if quiet := c.socket.quietSince(asked); quiet < answer {
				silent.Reset(answer - quiet) // it is only slow
			} else {
				signal(c.silent) // ends the call if another server is faster
				silent.Reset(answer)
			}
		}
	}
}

var errSilent = errors.New("the server did not answer, so the client moved to another one")

// acquire waits for a client with a session. The caller must call calls.Done on it.
func (z *ZK) acquire(ctx context.Context) (*zkClient, error) {
	for {
		z.mu.Lock()
		closed, denied, c, changed := z.closed, z.denied, z.client, z.changed
		if c != nil && !closed && ctx.Err() == nil {
			c.calls.Add(1)
			z.mu.Unlock()
			return c, nil
		}
		z.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case denied != nil:
			return nil, denied
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// unreachable returns the error of a call that got no answer, with the reason if it is
// known.
func (z *ZK) unreachable(op, path string, err error) error {
	if errors.Is(err, ErrDenied) {
		return fmt.Errorf("%w (for %s %s)", err, op, path)
	}
	z.mu.Lock()
	why := z.why
	z.mu.Unlock()
	if why != nil && !errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, op, path, &noConnection{why, err})
	}
	return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, op, path, worded{err})
}

// user returns the user name in DigestAuth. The rest is secret.
func (z *ZK) user() string {
	user, _, _ := strings.Cut(z.cfg.DigestAuth, ":")
	return user
}
