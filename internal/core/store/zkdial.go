package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// The life of a connection to ZooKeeper:
//
//  1. Dialled: findServer tries all addresses. Each connection that opens gets a client of go-zookeeper (newZKClient).
//  2. Greeted: the server's greeting gives the client a session. findServer returns the first client that has one,
//     and discard retires the others.
//  3. Serving: ZK.serve sends the credentials, and then lets calls use the client.
//  4. Silent: a call has had no answer for a while. ZK.outrun looks for another server. If one greets before this
//     server sends anything, serve ends this connection and returns the other client. Otherwise calls go on.
//  5. Lost: the connection has ended, or Run ends. ZK.lose takes the client away from calls.
//  6. Retired: ZK.retire ends the session and the library's goroutines in the background. Run waits for that.

// dialTimeout bounds one attempt at one address: TCP, TLS and the greeting.
const dialTimeout = 5 * time.Second

// attempt is the result of dialling one address.
type attempt struct {
	client *zkClient
	target zkTarget
	err    error
}

// findServer dials all addresses, round by round, and returns the first client that gets a
// session. It returns nil when ctx is done. It starts an attempt without waiting for the
// one before to end, so a silent address or a server that is still starting delays nothing.
// On a slow link each attempt still has dialTimeout.
func (z *ZK) findServer(ctx context.Context, hosts *zkHosts) *zkClient {
	ctx, cancel := context.WithCancel(ctx)
	s := &search{came: make(chan attempt)}
	// This Add covers the whole search until discard is done. If an attempt that retires
	// its client made the first Add, that Add could race with the Wait in Run.
	z.ending.Add(1)
	defer func() {
		cancel()
		go z.discard(s)
	}()
	for ctx.Err() == nil {
		notice := z.notice.Load()
		targets := hosts.round(ctx, notice.Lookup())
		for i, target := range targets {
			s.running++
			go func() { s.came <- z.try(ctx, target) }()
			last := i == len(targets)-1
			wait := notice.Dial() / time.Duration(len(targets))
			if last {
				wait = max(wait, s.pause(notice.Pause()))
			}
			if found, ok := z.await(ctx, s, wait, !last); ok {
				hosts.last = found.target
				return found.client
			}
		}
	}
	return nil
}

// search counts the attempts that are running, and has the channel for their results.
type search struct {
	came    chan attempt
	running int
	paused  time.Duration // the last pause
}

// longestPause bounds the pause between two rounds while attempts are running.
const longestPause = time.Second

// pause returns how long to wait before the next round: the shortest pause, and twice the last one
// while servers are silent. For each attempt a ZooKeeper makes a session, even if nobody waits for
// it any more. Many nodes that try often would never let a slow ZooKeeper catch up.
func (s *search) pause(shortest time.Duration) time.Duration {
	if s.running == 0 || s.paused == 0 {
		s.paused = shortest
	} else {
		s.paused = max(shortest, min(2*s.paused, longestPause))
	}
	return s.paused
}

// await waits up to wait for an attempt that succeeds. If hasty is set, it also gives up
// when one has failed. It reports whether an attempt succeeded.
func (z *ZK) await(ctx context.Context, s *search, wait time.Duration, hasty bool) (attempt, bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return attempt{}, false
		case <-timer.C:
			return attempt{}, false
		case a := <-s.came:
			s.running--
			if a.client != nil {
				return a, true
			}
			z.noteFailure(a.err)
			if hasty {
				return attempt{}, false
			}
		}
	}
}

// discard waits for the attempts that are still running, and retires the clients that they
// return.
func (z *ZK) discard(s *search) {
	defer z.ending.Done()
	for range s.running {
		if a := <-s.came; a.client != nil {
			z.retire(a.client)
		}
	}
}

// try dials one address and waits for its greeting.
func (z *ZK) try(ctx context.Context, to zkTarget) attempt {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	socket, err := dial(ctx, to, z.cfg.TLS)
	if errors.Is(err, syscall.ECONNRESET) {
		err = &ungreeted{err}
	}
	if err != nil {
		return attempt{target: to, err: err}
	}
	z.noteFailure(fmt.Errorf("%s: no ZooKeeper greeting yet", to.label()))
	c, err := newZKClient(&z.cfg, socket, to.label())
	if err != nil {
		return attempt{target: to, err: err}
	}
	for {
		if c.session() != 0 {
			return attempt{client: c, target: to}
		}
		select {
		case <-c.wake:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.socket.gone:
			err = &ungreeted{c.socket.failure()}
		}
		z.retire(c)
		return attempt{target: to, err: fmt.Errorf("%s: %w", to.label(), err)}
	}
}

// dial opens a connection, TLS included.
func dial(ctx context.Context, to zkTarget, config *tls.Config) (*wireConn, error) {
	if to.err != nil {
		return nil, to.err
	}
	socket, err := new(net.Dialer).DialContext(ctx, "tcp", to.addr)
	if err != nil {
		return nil, err
	}
	if config != nil {
		if config.ServerName == "" {
			config = config.Clone()
			config.ServerName, _, _ = net.SplitHostPort(to.name)
		}
		secured := tls.Client(socket, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, &tlsError{to.label(), err}
		}
		socket = secured
	}
	by, _ := ctx.Deadline()
	return newWireConn(socket, by), nil
}
