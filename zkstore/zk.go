package zkstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/limits"
)

// ZK is the Store in a real ZooKeeper.
//
// Run keeps the connection. Calls wait for it until their deadline, also before
// Run has begun. Each connection has a session of its own: the ephemeral records of
// the one before end with its timeout, and are their makers' to make again.
//
// A call ends with its connection, so a write that ended in ErrUnreachable has been
// sent by then or never is. A server may still apply it a moment later.
type ZK struct {
	cfg     ZKConfig
	connect Connect
	root    string
	acl     []zk.ACL
	notice  atomic.Pointer[limits.Notice]
	done    chan struct{}  // closed when Run has returned
	ending  sync.WaitGroup // clients that are being ended

	mu      sync.Mutex // guards what follows
	stop    context.CancelFunc
	closed  bool
	endErr  error     // of Run
	client  *zkClient // the present one, nil while there is no session
	before  bool      // there was a session before
	why     error     // why there is no connection
	denied  error     // why the credentials were refused
	changed chan struct{}
}

var _ Store = (*ZK)(nil)

// NewZK checks the configuration. Nothing is dialled before Run.
func NewZK(cfg ZKConfig) (*ZK, error) {
	cfg, connect, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	z := &ZK{
		cfg:     cfg,
		connect: connect,
		root:    connect.Chroot + "/flaked/" + cfg.Cluster,
		acl:     cfg.acl(),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
	}
	z.Hurry(limits.Default())
	return z, nil
}

// Root is the path of the cluster's records in ZooKeeper.
func (z *ZK) Root() string { return z.root }

// Identity names this ZooKeeper and the chroot in it, in one form.
func (z *ZK) Identity() string { return z.connect.Identity() }

// SessionID is part of Store.
func (z *ZK) SessionID() int64 {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.client == nil {
		return 0
	}
	return z.client.session()
}

// Connected reports whether there is a session that calls can use now. A server
// that falls silent is noticed when a call waits for it.
func (z *ZK) Connected() bool { return z.SessionID() != 0 }

// Changed returns a channel that is closed when the connection is next lost
// or made.
func (z *ZK) Changed() <-chan struct{} {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.changed
}

// Hurry is part of Store.
func (z *ZK) Hurry(n limits.Notice) { z.notice.Store(&n) }

// Run keeps the connection until ctx is done or Close is called, then ends the
// session. It returns when all it started has ended; an error means that
// something has not within some seconds. Run can be called once.
func (z *ZK) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	z.mu.Lock()
	switch {
	case z.stop != nil:
		z.mu.Unlock()
		return errors.New("zkstore: ZK.Run called twice")
	case z.closed:
		z.mu.Unlock()
		return nil
	}
	z.stop = cancel
	z.mu.Unlock()
	defer close(z.done)

	z.supervise(ctx)
	z.ending.Wait()
	z.mu.Lock()
	defer z.mu.Unlock()
	z.closed = true
	return z.endErr
}

// shortLived is the life below which a connection counts as a failed attempt: a
// server that accepts and hangs up is not dialled again without a pause.
const shortLived = time.Second

// supervise makes one connection after the other.
func (z *ZK) supervise(ctx context.Context) {
	hosts := newHosts(z.connect.Hosts)
	for ctx.Err() == nil {
		c := z.findServer(ctx, hosts)
		began := time.Now()
		for c != nil {
			next := z.serve(ctx, c, hosts)
			z.lose(c, ctx.Err() != nil)
			c = next
		}
		if time.Since(began) > shortLived {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(z.notice.Load().Pause()):
		}
	}
}

// serve lets calls use a client until its connection ends, or ctx does, or another
// server was faster than this one: that one's client is the result then.
func (z *ZK) serve(ctx context.Context, c *zkClient, hosts *zkHosts) *zkClient {
	if err := z.authenticate(ctx, c); err != nil {
		_ = c.socket.fail(err)
		return nil
	}
	z.use(c)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.socket.gone:
			return nil
		case <-c.silent:
			if next := z.outrun(ctx, c, hosts); next != nil {
				_ = c.socket.fail(errSilent)
				return next
			}
		}
	}
}

// outrun looks for another server while this one is silent. It returns nil as soon
// as this one says something: a slow server is better than none.
func (z *ZK) outrun(ctx context.Context, c *zkClient, hosts *zkHosts) *zkClient {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := time.Now()
	found := make(chan *zkClient)
	go func() { found <- z.findServer(ctx, hosts) }()
	look := time.NewTicker(z.notice.Load().Answer / 10)
	defer look.Stop()
	for {
		select {
		case next := <-found:
			return next
		case <-c.socket.gone: // there is nothing to lose any more
			return <-found
		case <-look.C:
			if c.socket.quietSince(asked) < time.Since(asked) {
				cancel()
				if next := <-found; next != nil {
					z.retire(next)
				}
				z.clearFailure()
				return nil
			}
		}
	}
}

// authenticate says who we are, where that is configured.
func (z *ZK) authenticate(ctx context.Context, c *zkClient) error {
	if z.cfg.DigestAuth == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, z.cfg.CallTimeout)
	defer cancel()
	result := make(chan error, 1)
	c.calls.Go(func() { result <- c.conn.AddAuth("digest", []byte(z.cfg.DigestAuth)) })
	select {
	case err := <-result:
		return mapErr("authenticate", "as "+z.user(), err)
	case <-ctx.Done():
		return mapErr("authenticate", "as "+z.user(), ctx.Err())
	}
}

// use makes a client the one that calls go to.
func (z *ZK) use(c *zkClient) {
	z.mu.Lock()
	again := z.before
	z.client, z.before, z.why, z.denied = c, true, nil, nil
	z.tell()
	z.mu.Unlock()
	id := fmt.Sprintf("%#x", uint64(c.conn.SessionID()))
	if again {
		z.cfg.Logger.Info("connected to ZooKeeper again", "session", id)
	} else {
		z.cfg.Logger.Info("connected to ZooKeeper", "servers", z.connect.String(), "session", id)
	}
}

// lose takes a client away from calls, and ends it.
func (z *ZK) lose(c *zkClient, closing bool) {
	why := c.socket.failure()
	z.mu.Lock()
	used := z.client == c
	z.client = nil
	if closing {
		z.closed = true
	}
	if used {
		z.tell()
	}
	z.mu.Unlock()
	z.failed(why)
	if used && !closing {
		z.cfg.Logger.Warn("connection to ZooKeeper lost", "error", why)
	}
	z.retire(c)
}

// failed remembers why there is no connection.
func (z *ZK) failed(why error) {
	if why == nil {
		return
	}
	z.mu.Lock()
	z.why = why
	news := errors.Is(why, ErrDenied) && z.denied == nil
	if errors.Is(why, ErrDenied) {
		z.denied = why
	}
	if news {
		z.tell()
	}
	z.mu.Unlock()
	if news {
		z.cfg.Logger.Error("ZooKeeper denied the credentials", "error", why)
	}
}

func (z *ZK) clearFailure() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.why = nil
}

// tell wakes those who wait for a change. z.mu is held.
func (z *ZK) tell() {
	close(z.changed)
	z.changed = make(chan struct{})
}

// retire ends a client that calls do not use any more, in the background: a server
// that is silent must not hold up the next connection.
func (z *ZK) retire(c *zkClient) {
	z.ending.Go(func() {
		if err := c.close(); err != nil {
			z.mu.Lock()
			z.endErr = err
			z.mu.Unlock()
			z.cfg.Logger.Warn("a ZooKeeper client lingers", "error", err)
		}
	})
}

// Close ends the session and makes Run return, then waits for it. Calls fail
// from then on.
func (z *ZK) Close() error {
	z.mu.Lock()
	stop := z.stop
	if !z.closed {
		z.closed = true
		z.tell()
	}
	z.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	<-z.done
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.endErr
}
